package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// echoServer returns an echo server with the given subprotocols.
func echoServer(t *testing.T, protocols ...string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.Header().Set("X-Why", "closed")
			http.Error(w, "we are closed", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Origin", r.Header.Get("Origin"))
		c, err := ws.Accept(w, r, &ws.AcceptOptions{Subprotocols: protocols, InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			typ, msg, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), typ, msg) != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// socketProxy serves a proxy in front of a WebSocket upstream.
func socketProxy(t *testing.T, url string, c websocket.Config, limits ...limit.Limit) (*Proxy, string) {
	t.Helper()
	policy := brisk()
	policy.Limits, policy.Undeclared = limits, true
	u := up(url, policy)
	u.Routes, u.Sockets = []Route{{Path: "/", WebSocket: true}}, &c
	u.Keys = map[string]httpx.Source{"user": {Kind: httpx.FromHeader, Name: "X-User"}}
	p, err := New([]Upstream{u}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p, listen(t, p)
}

func dialSocket(t *testing.T, address string, o *ws.DialOptions) (*ws.Conn, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, resp, err := ws.Dial(ctx, "ws://"+strings.TrimPrefix(address, "http://"), o)
	if c != nil {
		c.SetReadLimit(-1)
		t.Cleanup(func() { c.CloseNow() })
	}
	return c, resp, err
}

// talk sends a message and returns the next one.
func talk(t *testing.T, c *ws.Conn, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Write(ctx, ws.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, msg, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(msg)
}

func each(name string, n int64, scope string, operations ...string) limit.Limit {
	return limit.Limit{Name: name, Rate: bucket.Rate{Amount: n, Per: time.Hour, Burst: n}, Scope: scope, Operations: operations}
}

func TestMessagesArePassedOnAndRefusedByRoute(t *testing.T) {
	s := echoServer(t)
	_, address := socketProxy(t, s.URL, websocket.Config{Field: []string{"action"}, Routes: []string{"send"}}, each("sends", 2, "", "send"))
	c, resp, err := dialSocket(t, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get(httpx.CorrelationHeader) == "" {
		t.Error("the connection has no id")
	}
	for _, text := range []string{`{"action":"send"}`, `{"action":"other"}`, `{"action":"send","n":2}`, "hello"} {
		if got := talk(t, c, text); got != text {
			t.Errorf("%s: %s came back", text, got)
		}
	}
	var refused struct {
		Error struct {
			Code    string
			Details struct {
				Limit string
				Retry int64 `json:"retry_after_ms"`
			}
		}
		ConnectionID, RequestID string
	}
	if err := json.Unmarshal([]byte(talk(t, c, `{"action":"send"}`)), &refused); err != nil {
		t.Fatal(err)
	}
	if refused.Error.Code != "RATE_LIMIT_EXCEEDED" || refused.Error.Details.Limit != "sends" || refused.Error.Details.Retry < 1 ||
		refused.ConnectionID == "" || !strings.HasPrefix(refused.RequestID, refused.ConnectionID) {
		t.Errorf("refused with %+v", refused)
	}
	if got := talk(t, c, "still there"); got != "still there" {
		t.Errorf("after a refusal: %s", got)
	}
}

func TestConnectionsAreLimitedAsConnect(t *testing.T) {
	s := echoServer(t)
	_, address := socketProxy(t, s.URL, websocket.Config{MostBy: map[string]int{"user": 1}}, each("beginnings", 3, "", "connect"))
	as := func(user string) *ws.DialOptions {
		return &ws.DialOptions{HTTPHeader: http.Header{"X-User": {user}}}
	}
	first, _, err := dialSocket(t, address, as("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, resp, err := dialSocket(t, address, as("a")); err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get(RefusedHeader) != "concurrency_limited" {
		t.Errorf("a second connection of one user: %v", resp)
	}
	if _, _, err := dialSocket(t, address, as("b")); err != nil {
		t.Errorf("another user: %v", err)
	}
	_ = first.Close(ws.StatusNormalClosure, "")
	for ctx := t.Context(); ; { // until the proxy has noticed
		_, resp, err := dialSocket(t, address, as("a"))
		if err == nil {
			break
		}
		if resp == nil || resp.Header.Get(RefusedHeader) != "concurrency_limited" || ctx.Err() != nil {
			t.Fatalf("after the first has left: %v", resp)
		}
	}
	if _, resp, err := dialSocket(t, address, as("c")); err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get(RefusedHeader) != "rate_limited" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the fourth within the hour: %v", resp)
	}
}

func TestWhatTheUpstreamSaysIsWhatTheCallerGets(t *testing.T) {
	s := echoServer(t, "chat.v2")
	_, address := socketProxy(t, s.URL, websocket.Config{})
	_, resp, err := dialSocket(t, address+"/no", nil)
	if err == nil || resp.StatusCode != http.StatusForbidden || resp.Header.Get("X-Why") != "closed" {
		t.Fatalf("refused: %v", resp)
	}
	body := make([]byte, 100)
	if n, _ := resp.Body.Read(body); string(body[:n]) != "we are closed\n" {
		t.Errorf("refused with %q", body[:n])
	}
	c, resp, err := dialSocket(t, address, &ws.DialOptions{Subprotocols: []string{"secret.key", "chat.v2"}, CompressionMode: ws.CompressionContextTakeover, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
	if err != nil || c.Subprotocol() != "chat.v2" || resp.Header.Get("X-Origin") != "https://elsewhere.example" || resp.Header.Get("Sec-Websocket-Extensions") != "" {
		t.Errorf("agreed on %v, %v", resp, err)
	}
	if got := talk(t, c, "hello"); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// A request with an incomplete WebSocket upgrade is an ordinary request, so it cannot bypass the limits of messages.
func TestNoOtherUpgradeLeavesARouteOfWebSockets(t *testing.T) {
	asked := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Upgrade") }))
	defer s.Close()
	_, address := socketProxy(t, s.URL, websocket.Config{})
	for _, wish := range []string{"websocket/13", "chat", "x-websocket"} {
		r, _ := http.NewRequest(http.MethodGet, "http://"+strings.TrimPrefix(address, "http://")+"/", nil)
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {wish}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := <-asked; got != "" || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: the upstream is asked for %q and answers %d", wish, got, resp.StatusCode)
		}
	}
}

// An upstream that accepts with an invalid handshake causes an error, and its response is not passed on.
func TestAnAnswerThatIsNoHandshake(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "websocket")
		h.Set("Sec-Websocket-Accept", "wrong")
		h.Set("Sec-Websocket-Protocol", "secret.k3y-of-mine")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	defer s.Close()
	_, address := socketProxy(t, s.URL, websocket.Config{})
	_, resp, err := dialSocket(t, address, nil)
	if err == nil || resp.StatusCode != http.StatusBadGateway {
		t.Fatalf("%v, %v", resp, err)
	}
	body := make([]byte, 1000)
	n, _ := resp.Body.Read(body)
	if text := string(body[:n]); strings.Contains(text, "k3y") || !strings.Contains(text, "SERVICE_UNAVAILABLE") || strings.Contains(resp.Header.Get("Sec-Websocket-Protocol"), "k3y") {
		t.Errorf("got %s", text)
	}
}

// An unreachable upstream is retried as for any call.
func TestAnUpstreamThatIsAwayIsTriedAgain(t *testing.T) {
	var n atomic.Int32
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c, err := ws.Accept(w, r, nil)
		if err == nil {
			_ = c.Close(ws.StatusNormalClosure, "")
		}
	}))
	defer back.Close()
	_, address := socketProxy(t, back.URL, websocket.Config{})
	c, resp, err := dialSocket(t, address, nil)
	if err != nil || resp.Header.Get(AttemptsHeader) != "2" {
		t.Fatalf("%v, %v", resp, err)
	}
	if _, _, err := c.Read(t.Context()); ws.CloseStatus(err) != ws.StatusNormalClosure {
		t.Error(err)
	}
}
