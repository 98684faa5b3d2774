package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

const sockets = `
upstreams:
  chat:
    url: https://chat.example.com
    routes: [{path: /chat/, strip: true, websocket: true}]
    keys: {user: "header:X-User"}
`

func TestWebSockets(t *testing.T) {
	f := parse(t, sockets+`
    websocket: {route_by: $request.body.data.kind, message_routes: join, max_message: 1MiB, message_wait: 2s, write_timeout: 5s, ping: 10s, idle: 10m, lifetime: 2h, refusals: 50, connections: 1000, connections_by: {user: 5}}
    limits:
      beginnings: {rate: 5/s, operations: $connect}
      sends: {rate: 10/s, operations: [send, $default]}
      each: {rate: 20/s, scope: connection}
`)
	u := f.Upstreams[0]
	want := websocket.Config{
		Field: []string{"data", "kind"}, Routes: []string{"join", "send"}, MaxMessage: 1 << 20, Wait: 2 * time.Second, Write: 5 * time.Second,
		Ping: 10 * time.Second, Idle: 10 * time.Minute, Lifetime: 2 * time.Hour, Refusals: 50, Most: 1000, MostBy: map[string]int{"user": 5},
	}
	if !reflect.DeepEqual(*u.Sockets, want) || !u.Routes[0].WebSocket {
		t.Errorf("got %+v, want %+v", *u.Sockets, want)
	}
	l := u.Policy.Limits
	if !reflect.DeepEqual(l[0].Operations, []string{websocket.Connect}) || !reflect.DeepEqual(l[1].Operations, []string{"send", weir.DefaultOperation}) {
		t.Errorf("limits count %v and %v", l[0].Operations, l[1].Operations)
	}
	if !l[2].Local || l[2].If.Picks("") || !l[2].If.Picks("c1") {
		t.Errorf("a limit by connection is %+v", l[2])
	}
}

func TestWebSocketsNeedNoFields(t *testing.T) {
	if u := parse(t, sockets).Upstreams[0]; u.Sockets == nil || !u.Policy.Undeclared {
		t.Errorf("got %+v", u.Sockets)
	}
}

func TestWebSocketsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"    llm: {}": "websocket cannot be combined with llm",
		"    aws: {service: s3, region: eu-west-1}": "websocket cannot be combined with aws",
		"    grpc: true": "websocket cannot be combined with HTTP/2",
		"    websocket: {message_routes: [join]}":                  "route_by is missing",
		"    websocket: {route_by: a, message_routes: [$connect]}": "is the route of opening a connection",
		"    websocket: {route_by: a..b}":                          "is not the path of a field",
		"    websocket: {route_by: \"$context.x\"}":                "is not the path of a field",
		"    websocket: {connections_by: {tenant: 5}}":             "unknown scope",
		"    websocket: {max_message: 1}":                          "must be from 1KiB",
		"    websocket: {ping: off}":                               "off",
	} {
		_, err := Parse("weir.yaml", []byte(sockets+text+"\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		strings.Replace(sockets, ", websocket: true", "", 1) + "    websocket: {}\n":                                    "no route of the upstream has websocket: true",
		"deliveries: {file: d.db}\n" + strings.Replace(sockets, "websocket: true", "websocket: true, deliver: true", 1): "websocket cannot be combined with deliver",
		strings.Replace(sockets, "https://chat", "h2c://chat", 1):                                                       "websocket cannot be combined with HTTP/2",
	} {
		_, err := Parse("weir.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
