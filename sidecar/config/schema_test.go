package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled returns the schema, ready to validate.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.json", parsed); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate returns the errors of a YAML text according to the schema.
func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// shippedFiles returns the configurations under examples and deploy.
func shippedFiles(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, pattern := range []string{"../../examples/*/*.yaml", "../../deploy/*/*.yaml", "../../deploy/*/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v map[string]any
			if yaml.Unmarshal(data, &v) == nil && v["upstreams"] != nil {
				all[file] = string(data)
			}
		}
	}
	if len(all) < 10 {
		t.Fatalf("found %d configurations, want 10 at least", len(all))
	}
	return all
}

func TestSchemaAcceptsShippedFiles(t *testing.T) {
	s := compiled(t)
	for file, text := range shippedFiles(t) {
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestShippedFilesHaveNoRemovedFields(t *testing.T) {
	for file, text := range shippedFiles(t) {
		if f, err := Parse(file, []byte(text), nil); err != nil {
			t.Errorf("%s: %v", file, err)
		} else if len(f.Removed()) > 0 {
			t.Errorf("%v", f.Removed())
		}
	}
}

// The schema accepts every sample of the reference page, and refuses what the reader refuses in general.
func TestSchemaAgreesWithReader(t *testing.T) {
	s := compiled(t)
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "```")
	for i := 1; i < len(parts); i += 2 {
		if text, ok := strings.CutPrefix(parts[i], "yaml\n"); ok {
			if err := validate(t, s, text); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
	for _, good := range []string{
		"upstreams: {a: {url: https://h, limits: {get: 5/s, put: off}}}",
		"upstreams: {a: {url: https://h, breaker: off, retry: aws, fair: user, concurrency: 5, quota: aws, max_wait: off}}",
		"upstreams: {a: {url: https://h, budget: {share: 0.1, all: 100/min}, timeouts: {call: off}}}",
		"callers: {keys: {run: \"header:X-Agent-Run\", tool: \"header:Mcp-Name\"}, limits: {pair: {rate: 5/s, scope: [run, tool]}}}\nupstreams: {a: {url: https://h, callers: true}}",
		"callers: true\nmetrics: true\nupstreams: {a: {url: https://h, llm: {cache: true}}}",
		"tokens: {a: {env: A, admin: true}, b: {env: [B, C], reports: own, keys: {tenant: [x]}}}\nupstreams: {a: {url: https://h}}",
		"log: attempts\nupstreams: {a: {url: https://h, llm: {cascade: {tiers: [{answers: f.yaml}, {message: Sorry.}]}}}}",
	} {
		if err := validate(t, s, good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"upstreams: {a: {url: https://h, limts: {}}}",
		"upstreams: {a: {url: https://h, max_wait: 5 parsecs}}",
		"upstreams: {a: {url: https://h, max_wait: 5}}",
		"upstreams: {a: {url: https://h, timeouts: {call: soon}}}",
		"upstreams: {a: {url: https://h, limits: {get: fast}}}",
		"upstreams: {a: {url: https://h, limits: {get: {rate: 5/s, brust: 3}}}}",
		"upstreams: {a: {url: https://h, retry: {attempts: three}}}",
		"upstreams: {a: {url: https://h, limits: {get: {rate: 5/s, scope: [run]}}}}",
		"upstreams: {a: {url: https://h, routes: [{pth: /}]}}",
		"upstreams: {a: {url: https://h, max_body: big}}",
		"upstreams: {a: {url: https://h, budget: {share: half}}}",
		"upstreams: {a: {url: https://h, paths: insensitive}}",
		"upstreams: {a: {url: https://h, grpc: 5}}",
		"store: {reddis: x}\nupstreams: {a: {url: https://h}}",
		"traces: {url: x, central: true}\nupstreams: {a: {url: https://h}}",
		"listen: :8080",
	} {
		if err := validate(t, s, bad); err == nil {
			t.Errorf("%s: accepted, want an error", bad)
		}
	}
}
