package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// yamlOf returns a configuration with an upstream named up.
func yamlOf(url, more string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n%s\nupstreams: {up: {url: %q, max_wait: off, limits: {calls: 1000/s}}}\n", more, url)
}

func write(t testing.TB, file, url, more string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(yamlOf(url, more)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func noEnv(string) (string, bool) { return "", false }

// eventually waits for a condition in real time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// initStore initializes a new store and returns weir's output.
func initStore(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := fmt.Sprintf("store: {redis: %q}\nupstreams: {up: {url: \"http://localhost\"}}\n", url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; { // a busy machine may not connect in time
		var out bytes.Buffer
		err := run(t.Context(), world{args: []string{"store", "init", "-config", file}, out: &out, err: io.Discard, env: noEnv})
		if err == nil {
			return out.String()
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
