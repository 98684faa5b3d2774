package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// An upstream that a reload adds starts full if weir store init prepared the store. Otherwise the response of the
// reload reports the missing record.
func TestUpstreamAddedByReload(t *testing.T) {
	for _, ready := range []bool{true, false} {
		srv := servers.Redis(t)
		url := echo(t)
		file := filepath.Join(t.TempDir(), "weir.yaml")
		upstreams := func(names ...string) {
			text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n", srv.URL())
			for _, n := range names {
				text += fmt.Sprintf("  %s: {url: %q, max_wait: 5s, limits: {day: {amount: 25, every: day, zone: %s}, minute: {rate: 25/min, shape: rolling}}}\n", n, url, anotherZone())
			}
			put(t, file, text)
		}
		upstreams("one", "two")
		if ready {
			initialise(t, file)
		}
		s := startFile(t, file)
		if !ready {
			s.log.waitFor(t, "store is cold")
		}
		upstreams("one", "two", "added")
		resp, err := http.Post("http://"+s.admin.Addr().String()+"/v1/reload", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var c status.Config
		if err := json.Unmarshal(body, &c); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("reload: %d %s, %v", resp.StatusCode, body, err)
		}
		if unknown := strings.Contains(c.Store, "added") && strings.Contains(c.Store, "weir store init"); unknown == ready {
			t.Errorf("ready %v: the reload reports of the store: %q", ready, c.Store)
		}
		if status := firstCall(t, s, "/added/x"); (status == http.StatusOK) != ready {
			t.Errorf("ready %v: a call of the added upstream gets %d", ready, status)
		}
	}
}

// A process that starts with an additional upstream serves it.
func TestUpstreamAddedByStart(t *testing.T) {
	srv := servers.Redis(t)
	url := echo(t)
	file := func(names ...string) string {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n", srv.URL())
		for _, n := range names {
			text += fmt.Sprintf("  %s: {url: %q, max_wait: 5s, limits: {day: {amount: 25, every: day, zone: %s}, minute: {rate: 25/min, shape: rolling}}}\n", n, url, anotherZone())
		}
		put(t, file, text)
		return file
	}
	first := file("one")
	initialise(t, first)
	startFile(t, first)
	s := startFile(t, file("one", "added"))
	for _, path := range []string{"/added/x", "/one/x"} {
		if status := firstCall(t, s, path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// firstCall returns the status of one call.
func firstCall(t *testing.T, s *sidecar, path string) int {
	t.Helper()
	resp, err := http.Get("http://" + s.address() + path)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Logf("%s: %s", path, body)
	}
	return resp.StatusCode
}
