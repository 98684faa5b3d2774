package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestMistakesInDeliveries(t *testing.T) {
	for text, want := range map[string]string{
		"upstreams: {a: {url: 'http://a.test', routes: [{path: /, deliver: true}]}}":                                                                      "upstreams.a.routes[0].deliver: deliveries are not configured; write deliveries: {file: deliveries.db}",
		"deliveries: {}\nupstreams: {a: {url: 'http://a.test'}}":                                                                                          "deliveries: needs one of file, postgres and aws",
		"deliveries: {file: d.db, keep: 5}\nupstreams: {a: {url: 'http://a.test'}}":                                                                       "has no unit",
		"upstreams: {a: {url: 'http://a.test', deliver_schedule: never}}":                                                                                 "is not a schedule of deliveries; write webhook or messaging",
		"upstreams: {a: {url: 'http://a.test', deliver_headers: [X-Api-Key]}}":                                                                            "X-Api-Key holds credentials, which are not stored",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', routes: [{path: /, deliver: maybe}]}}":                                           "want true, always or false",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'https://s3.eu-central-1.amazonaws.com', aws: {}, routes: [{path: /, deliver: true}]}}":           "the service and region to sign for are required",
		"upstreams: {a: {url: 'http://a.test', routes: [{path: /, idempotency: keep}]}}":                                                                  "upstreams.a.routes[0].idempotency: deliveries, which store responses, are not configured; write deliveries: {file: deliveries.db}",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', routes: [{path: /, idempotency_busy: wait}]}}":                                   "add idempotency: keep",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', llm: {}, routes: [{path: /, idempotency: keep}]}}":                               "use its cache",
		"upstreams: {a: {url: 'http://a.test', credentials: {Content-Type: A}}}":                                                                          "Content-Type is not a header for credentials",
		"upstreams: {a: {url: 'http://a.test', credentials: {Authorization: A}, aws: {}}}":                                                                "weir signs requests",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', llm: {}, routes: [{path: /, deliver: true}]}}":                                   "with llm cannot be delivered later yet",
		"deliveries: {file: d.db, postgres: {url: 'postgres://weir@db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                                    "deliveries: needs one of file, postgres and aws",
		"deliveries: {postgres: {password_env: A}}\nupstreams: {a: {url: 'http://a.test'}}":                                                               "deliveries.postgres: has no url",
		"deliveries: {postgres: {url: 'mysql://db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                                                        "must begin with postgres://",
		"deliveries: {postgres: {url: 'postgres://weir:hunter2@db/weir'}}\nupstreams: {a: {url: 'http://a.test'}}":                                        "must not contain a password",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir?password=hunter2'}}\nupstreams: {a: {url: 'http://a.test'}}":                               "must not contain a password",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir?sslmode=maybe'}}\nupstreams: {a: {url: 'http://a.test'}}":                                  "sslmode",
		"deliveries: {aws: {region: eu-west-1}}\nupstreams: {a: {url: 'http://a.test'}}":                                                                  "deliveries.aws: has no table",
		"deliveries: {file: d.db, aws: {table: t}}\nupstreams: {a: {url: 'http://a.test'}}":                                                               "deliveries: needs one of file, postgres and aws",
		"deliveries: {aws: {table: t, queue: weir}}\nupstreams: {a: {url: 'http://a.test'}}":                                                              "is not the URL of a server",
		"deliveries: {aws: {table: t, queue: 'https://sqs.eu-west-1.amazonaws.com/1/w.fifo'}}\nupstreams: {a: {url: 'http://a.test'}}":                    "is a FIFO queue",
		"deliveries: {postgres: {url: 'postgres://weir@db/weir', connections: 0}}\nupstreams: {a: {url: 'http://a.test'}}":                                "connections",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', deliver_callback: app}}":                                                         `upstreams.a.deliver_callback: unknown callback "app"; write deliveries: {callbacks: {app: {upstream: NAME, path: /hooks/weir, secrets_env: CALLBACK_SECRET}}}`,
		"upstreams: {a: {url: 'http://a.test', deliver_callback: app}}":                                                                                   `unknown callback "app"`,
		"deliveries: {file: d.db, callbacks: {app: {upstream: b, secrets_env: S}}}\nupstreams: {a: {url: 'http://a.test', deliver_callback: app}}":        `deliveries.callbacks.app.upstream: unknown upstream "b"; add upstreams: {NAME: {url: https://HOST}} for the host to call, and name it here`,
		"deliveries: {file: d.db, callbacks: {app: {upstream: 'https://b.test/hook', secrets_env: S}}}\nupstreams: {a: {url: 'http://a.test'}}":           `unknown upstream "https://b.test/hook"`,
		"deliveries: {file: d.db, callbacks: {app: {upstream: a}}}\nupstreams: {a: {url: 'http://a.test'}}":                                               "has no secret to sign with; write secrets_env: CALLBACK_SECRET",
		"deliveries: {file: d.db, callbacks: {app: {secrets_env: S}}}\nupstreams: {a: {url: 'http://a.test'}}":                                            "deliveries.callbacks.app: has no upstream",
		"deliveries: {file: d.db, callbacks: {app: {upstream: a, secrets_env: S, path: 'http://b.test/'}}}\nupstreams: {a: {url: 'http://a.test'}}":       "is not a path of an upstream",
		"deliveries: {file: d.db, callbacks: {app: {upstream: a, secrets_env: S}}}\nupstreams: {a: {url: 'http://a.test', llm: {}}}":                      "an upstream with llm cannot receive callbacks",
		"deliveries: {file: d.db, requests: {region: eu-west-1}}\nupstreams: {a: {url: 'http://a.test'}}":                                                 "deliveries.requests: has no queue",
		"deliveries: {file: d.db, requests: {queue: weir}}\nupstreams: {a: {url: 'http://a.test'}}":                                                       "deliveries.requests.queue: is not the URL of a server",
		"deliveries: {aws: {table: t, queue: 'https://sqs.test/1/w'}, requests: {queue: 'https://sqs.test/1/w'}}\nupstreams: {a: {url: 'http://a.test'}}": "is already the queue of deliveries.aws",
		"tokens: {app: {env: A}}\ndeliveries: {file: d.db, requests: {queue: 'https://sqs.test/1/w'}}\nupstreams: {a: {url: 'http://a.test'}}":            "deliveries.requests: has no owner",
		"tokens: {app: {env: A}}\ndeliveries: {file: d.db, requests: {queue: 'https://sqs.test/1/w', owner: ap}}\nupstreams: {a: {url: 'http://a.test'}}": `deliveries.requests.owner: unknown caller "ap"`,
		"deliveries: {postgres: {url: 'postgres://weir@db/weir'}, max_body: 1MiB}\nupstreams: {a: {url: 'http://a.test'}}":                                "deliveries.max_body: bodies above 256KiB need bodies; add bodies: s3://BUCKET/PREFIX, or a folder",
		"upstreams: {a: {url: 'http://a.test', operations: {o: {path: /o, deliver: true}}}}":                                                              "upstreams.a.operations.o.deliver: deliveries are not configured; write deliveries: {file: deliveries.db}",
		"upstreams: {a: {url: 'http://a.test', operations: {o: {idempotency: keep}}}}":                                                                    "upstreams.a.operations.o.idempotency: deliveries, which store responses, are not configured; write deliveries: {file: deliveries.db}",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', operations: {o: {idempotency_failed: keep}}}}":                                   "upstreams.a.operations.o: idempotency_busy and idempotency_failed need",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', llm: {}, operations: {o: {deliver: always}}}}":                                   "with llm cannot be delivered later yet",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'h2c://a.test', grpc: true, operations: {o: {deliver: always}}}}":                                 "gRPC calls cannot be delivered later",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', routes: [{path: /, websocket: true}], operations: {o: {deliver: always}}}}":      "a connection can be neither delivered later nor stored",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'https://sns.eu-central-1.amazonaws.com', aws: {}, operations: {Publish: {deliver: true}}}}":      "the service and region to sign for are required",
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', operations: {o: {deliver: maybe}}}}":                                             "want true, always or false",
	} {
		_, err := Parse("weir.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\nthe password is repeated: %v", text, err)
		}
	}
	for _, good := range []string{
		"routes: [{path: /, idempotency: keep}], operations: {o: {path: /o, idempotency_busy: wait}}",
		"routes: [{path: /, idempotency_busy: wait}], operations: {o: {path: /o, idempotency: keep}}",
	} {
		if _, err := Parse("weir.yaml", []byte("deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', "+good+"}}"), nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for says, want := range map[string]string{"deliver: true": byPriority, "deliver: false": "", "idempotency: keep": ""} { // direct calls go first
		f, err := Parse("weir.yaml", []byte("deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', operations: {o: {path: /o, "+says+"}}}}"), nil)
		if err != nil || f.Upstreams[0].Policy.Fair.By != want {
			t.Errorf("an operation says %s: turns by %q, %v, want %q", says, f.Upstreams[0].Policy.Fair.By, err, want)
		}
	}
	f, err := Parse("dir/weir.yaml", []byte("deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', deliver_schedule: messaging, routes: [{path: /, deliver: always}]}}"), nil)
	if err != nil || f.Deliveries.File != "dir/d.db" || f.Upstreams[0].Schedule != "messaging" {
		t.Errorf("%+v, %v", f, err)
	}
	if f.Deliveries.Bodies != "dir/d.db.bodies" || f.Deliveries.MaxBody != 256<<10 {
		t.Errorf("bodies in %q up to %d", f.Deliveries.Bodies, f.Deliveries.MaxBody)
	}
	f, err = Parse("weir.yaml", []byte("deliveries:\n  postgres:\n    url: postgres://weir@db/weir\n    password_env: DELIVERIES_PASSWORD\n    connections: 4\n    pooler: true\nupstreams: {a: {url: 'http://a.test'}}"), nil)
	if want := (Postgres{URL: "postgres://weir@db/weir", PasswordEnv: "DELIVERIES_PASSWORD", Connections: 4, Pooler: true}); err != nil || *f.Deliveries.Postgres != want {
		t.Errorf("%+v, %v", f, err)
	}
	if err := f.CheckEnv(func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), "DELIVERIES_PASSWORD") {
		t.Errorf("without its password: %v", err)
	}
}

func TestSecretsOfCallbacks(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("deliveries: {file: d.db, callbacks: {app: {upstream: a, path: '/hook?x=1', secrets_env: [NEW, OLD]}}}\nupstreams: {a: {url: 'http://a.test', deliver_callback: app}}"), nil)
	if err != nil || f.Upstreams[0].Callback != "app" {
		t.Fatalf("%+v, %v", f, err)
	}
	env := map[string]string{"NEW": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "OLD": "whsec_hunter2"}
	look := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if err := f.CheckEnv(look); err == nil || !strings.Contains(err.Error(), "environment variable OLD: is not a secret of Standard Webhooks") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad secret: %v", err)
	}
	if _, err := f.Deliveries.CallbacksOf(look); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad secret: %v", err)
	}
	env["OLD"] = env["NEW"]
	all, err := f.Deliveries.CallbacksOf(look)
	if c := all["app"]; err != nil || f.CheckEnv(look) != nil || c.Upstream != "a" || c.Path != "/hook?x=1" || len(c.Secrets) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if said := fmt.Sprintf("%v %+v %#v", all, all, all); strings.Contains(said, "MfKQ") || strings.Contains(said, "31 f2 90") || strings.Contains(said, "0x31") {
		t.Errorf("secrets are shown: %s", said)
	}
}

func TestBucketsOfLargeBodies(t *testing.T) {
	read := func(bodies, more string) (*File, error) {
		return Parse("weir.yaml", []byte("deliveries: {file: d.db, bodies: '"+bodies+"'"+more+"}\nupstreams: {a: {url: 'http://a.test'}}"), nil)
	}
	for text, want := range map[string]S3Bodies{
		"s3://bucket":                              {Bucket: "bucket"},
		"s3://my.bucket/":                          {Bucket: "my.bucket"},
		"s3://bucket/weir/prod/":                   {Bucket: "bucket", Prefix: "weir/prod/"},
		"s3://bucket/weir?region=eu-west-1":        {Bucket: "bucket", Prefix: "weir/", Region: "eu-west-1"},
		"s3://bucket?endpoint=http://127.0.0.1:90": {Bucket: "bucket", Endpoint: "http://127.0.0.1:90"},
	} {
		if f, err := read(text, ", max_body: 5GiB"); err != nil || f.Deliveries.Bodies != "" || *f.Deliveries.InBucket != want {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	for text, want := range map[string]string{
		"s3://":                         "names no bucket",
		"s3://My_Bucket":                "names no bucket",
		"s3://key:hunter2@bucket":       "is not the address of a bucket",
		"s3://bucket/a b":               "has an invalid prefix",
		"s3://bucket/a//b":              "has an invalid prefix",
		"s3://bucket/../b":              "has an invalid prefix",
		"s3://bucket?Region=eu":         `has the unknown parameter "Region"`,
		"s3://bucket?endpoint=host":     "its endpoint is not the URL of a server",
		"s3://bucket?endpoint=ftp://ab": "its endpoint is not the URL of a server",
	} {
		if _, err := read(text, ""); err == nil || !strings.Contains(err.Error(), "deliveries.bodies: "+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := read("s3://bucket", ", max_body: 6GiB"); err == nil || !strings.Contains(err.Error(), "deliveries.max_body: S3 accepts at most 5GiB") {
		t.Errorf("too large: %v", err)
	}
}
