package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckRefusesRemovedFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(path, []byte("traces: {url: \"http://127.0.0.1:4318\", jaeger: x, central: true}\nupstreams: {a: {url: \"http://127.0.0.1:1\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), world{args: []string{"check", path}, out: &out, err: &out, env: noEnv}); err == nil {
		t.Errorf("got no error, want one; output %q", out.String())
	}
	for _, want := range []string{":1:40: traces.jaeger: is removed", "; look up traces", ":1:51: traces.central", "use traces.share"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}
