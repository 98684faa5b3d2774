package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A clogged writer accepts one line and then blocks, like a full pipe without a reader.
type clogged struct{ first chan string }

func (c clogged) Write(b []byte) (int, error) {
	c.first <- string(b)
	return len(b), nil
}

// A log that is not read delays no call and does not keep weir from ending.
func TestBlockedLogBlocksNothing(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, upstream.URL, "log: debug")
	out, done := clogged{make(chan string)}, make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- run(ctx, world{args: []string{"serve", "-config", file}, err: out, env: noEnv}) }()
	var serving struct{ Listen string }
	if err := json.Unmarshal([]byte(<-out.first), &serving); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: patience}
	for range 10 {
		resp, err := client.Post("http://"+serving.Listen+"/up/", "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("answered %s", resp.Status)
		}
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("weir does not end while nobody reads its log")
	}
}
