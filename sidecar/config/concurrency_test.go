package config

import (
	"testing"

	"github.com/seed1158cd35/weir"
)

func TestConcurrency(t *testing.T) {
	auto := weir.Concurrency{Auto: true}
	for text, want := range map[string]weir.Concurrency{
		"":                         auto,
		"llm: {}":                  {},
		"preset: openai":           {},
		"preset: s3":               auto,
		"concurrency: off":         {},
		"concurrency: auto":        auto,
		"concurrency: Auto":        auto,
		"concurrency: 20":          {Limit: 20},
		"concurrency: {limit: 20}": {Limit: 20},
		"concurrency: {}":          auto,
		"concurrency: {min: 5}":    {Auto: true, Min: 5},
		"concurrency: {limit: auto, min: 5, max: 50}": {Auto: true, Min: 5, Max: 50},
	} {
		f, err := Parse("weir.yaml", []byte("upstreams:\n  a:\n    url: https://h\n    "+text+"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.Upstreams[0].Policy.Concurrency; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestConcurrencyOfAnOperation(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`
upstreams:
  a:
    url: https://h
    concurrency: auto
    operations:
      put: {methods: [PUT], concurrency: 3}
      list: {path: /list, concurrency: off}
      get: {methods: [GET]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	ops := f.Upstreams[0].Policy.Operations
	if c := ops[0].Concurrency; c == nil || *c != (weir.Concurrency{Limit: 3}) {
		t.Errorf("put: %+v", c)
	}
	if c := ops[1].Concurrency; c == nil || *c != (weir.Concurrency{}) {
		t.Errorf("list: %+v", c)
	}
	if c := ops[2].Concurrency; c != nil {
		t.Errorf("get: %+v", c)
	}
}

// Programs that request decisions may never report how a call ended.
func TestConcurrencyIsOffWhereDecisionsAreAskedFor(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("decide: {listen: 127.0.0.1:8082}\nupstreams:\n  a: {url: https://a}\n  b: {url: https://b, concurrency: auto}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.Upstreams[0].Policy.Concurrency, f.Upstreams[1].Policy.Concurrency; a != (weir.Concurrency{}) || !b.Auto {
		t.Errorf("%+v and %+v", a, b)
	}
}
