//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// The store's primary is demoted and continues as a readable replica. The log, /readyz and weir status report its responses and
// what to do. When the store's name leads to the new primary, weir finds it without a restart and reports it.
func TestAStoreThatWasDemotedIsToldAndLeft(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	old := servers.Redis(t)
	next := servers.Replica(t, old)
	name := servers.Named(t, old)
	w := start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n  up: {url: %q, limits: {all: 1000/s}}\n", name.URL(), up.URL))
	w.WaitFor("store is cold") // it has answered the first heartbeat
	next.CaughtUp(old)
	next.Promote()
	old.Follow(next)
	w.WaitFor("store not reached") // with any of several errors: connections end when a server becomes a replica
	var status string
	for end := time.Now().Add(time.Minute); !strings.Contains(status, "READONLY") || !strings.Contains(status, "name the primary"); {
		if time.Now().After(end) {
			t.Fatalf("nothing of a primary in %q", status)
		}
		status, _ = say(t, "status", "-admin", w.Serve.Admin)
	}
	const trouble = "problem with store redis"
	if said := shown(t, w, "/readyz"); !strings.Contains(said, trouble) {
		t.Errorf("/readyz: %s", said)
	}
	late := start(t, fmt.Sprintf("listen: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n  up: {url: %q, limits: {all: 1000/s}}\n", old.URL(), up.URL))
	if said := late.WaitFor("store not reached").Error; !strings.Contains(said, "READONLY") {
		t.Errorf("one that begins with a replica: %s", said)
	}
	name.Lead(next)
	w.WaitFor("store reached")
	if said := shown(t, w, "/readyz"); strings.Contains(said, trouble) {
		t.Errorf("it is over, and told still: %s", said)
	}
	if n := name.Made(); n < 2 || n > 100 {
		t.Errorf("%d connections were made", n)
	}
}

// shown returns a response of the admin listener.
func shown(t testing.TB, w *process, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + w.Serve.Admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
