package config

import (
	"strings"
	"testing"
)

func TestMistakesInDeliveries(t *testing.T) {
	for text, want := range map[string]string{
		"upstreams: {a: {url: 'http://a.test', routes: [{path: /, deliver: true}]}}":                                                            "upstreams.a.routes[0].deliver: there is nowhere to keep what is delivered later; write deliveries: {file: deliveries.db}",
		"deliveries: {}\nupstreams: {a: {url: 'http://a.test'}}":                                                                                "deliveries: wants one of file, postgres and aws",
		"deliveries: {file: d.db, keep: 5}\nupstreams: {a: {url: 'http://a.test'}}":                                                             "has no unit",
		"upstreams: {a: {url: 'http://a.test', deliver_schedule: never}}":                                                                       "is no schedule of deliveries; write webhook or messaging",
		"upstreams: {a: {url: 'http://a.test', deliver_headers: [X-Api-Key]}}":                                                                  "X-Api-Key holds credentials, which are not stored",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', routes: [{path: /, deliver: maybe}]}}":                                 "want true, always or false",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'https://s3.eu-central-1.amazonaws.com', aws: {}, routes: [{path: /, deliver: true}]}}": "it must be said here what is signed for",
		"upstreams: {a: {url: 'http://a.test', routes: [{path: /, idempotency: keep}]}}":                                                        "upstreams.a.routes[0].idempotency: there is nowhere to keep answers; write deliveries: {file: deliveries.db}",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', routes: [{path: /, idempotency_busy: wait}]}}":                         "add idempotency: keep",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', llm: {}, routes: [{path: /, idempotency: keep}]}}":                     "it has a cache",
		"upstreams: {a: {url: 'http://a.test', credentials: {Content-Type: A}}}":                                                                "Content-Type holds no credentials",
		"upstreams: {a: {url: 'http://a.test', credentials: {Authorization: A}, aws: {}}}":                                                      "weir signs requests itself",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', llm: {}, routes: [{path: /, deliver: true}]}}":                         "with llm cannot be delivered later yet",
		"deliveries: {file: d.db, postgres: {url: 'postgres://weir@db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                          "deliveries: wants one of file, postgres and aws",
		"deliveries: {postgres: {password_env: A}}\nupstreams: {a: {url: 'http://a.test'}}":                                                     "deliveries.postgres: has no url",
		"deliveries: {postgres: {url: 'mysql://db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                                              "must begin with postgres://",
		"deliveries: {postgres: {url: 'postgres://weir:hunter2@db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                              "must hold no password",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir?password=hunter2'}}\nupstreams: {a: {url: 'http://a.test'}}":                     "must hold no password",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir?sslmode=maybe'}}\nupstreams: {a: {url: 'http://a.test'}}":                        "sslmode",
		"deliveries: {aws: {region: eu-west-1}}\nupstreams: {a: {url: 'http://a.test'}}":                                                        "deliveries.aws: has no table",
		"deliveries: {file: d.db, aws: {table: t}}\nupstreams: {a: {url: 'http://a.test'}}":                                                     "deliveries: wants one of file, postgres and aws",
		"deliveries: {aws: {table: t, queue: weir}}\nupstreams: {a: {url: 'http://a.test'}}":                                                    "is not the URL of a server",
		"deliveries: {aws: {table: t, queue: 'https://sqs.eu-west-1.amazonaws.com/1/w.fifo'}}\nupstreams: {a: {url: 'http://a.test'}}":          "is a FIFO queue",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir', connections: 0}}\nupstreams: {a: {url: 'http://a.test'}}":                      "connections",
	} {
		_, err := Parse("weir.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\nthe password is repeated: %v", text, err)
		}
	}
	f, err := Parse("dir/weir.yaml", []byte("deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', deliver_schedule: messaging, routes: [{path: /, deliver: always}]}}"), nil)
	if err != nil || f.Deliveries.File != "dir/d.db" || f.Upstreams[0].Schedule != "messaging" {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = Parse("weir.yaml", []byte("deliveries:\n  postgres:\n    url: postgres://weir@db/weir\n    password_env: DELIVERIES_PASSWORD\n    connections: 4\n    pooler: true\nupstreams: {a: {url: 'http://a.test'}}"), nil)
	if want := (Postgres{URL: "postgres://weir@db/weir", PasswordEnv: "DELIVERIES_PASSWORD", Connections: 4, Pooler: true}); err != nil || *f.Deliveries.Postgres != want {
		t.Errorf("%+v, %v", f, err)
	}
	if err := f.CheckEnv(func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), "DELIVERIES_PASSWORD") {
		t.Errorf("without its password: %v", err)
	}
}
