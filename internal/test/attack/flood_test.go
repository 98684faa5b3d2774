//go:build unix

package attack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// gauge returns a metric of a running weir.
func gauge(t testing.TB, w *served.Process, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(text(get(t, "http://"+w.Serve.Admin+"/metrics")), "\n"+name+" ")
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// One caller opens more connections than allowed, which are silent or send an incomplete head. The number stays within the
// bound, and real requests are served.
func TestAttackConnections(t *testing.T) {
	w := served.Start(t, local+"upstreams:\n"+bystander(t))
	at := w.Serve.Listen
	most := gauge(t, w, `weir_listener_max{listener="listen",resource="caller_connections"}`)
	if n := gauge(t, w, `weir_listener_max{listener="listen",resource="connections"}`); most < 100 || most > n/2 {
		t.Fatalf("%d connections of one caller, %d in all", most, n)
	}
	heads := []string{"", "GET /calm/x HTTP/1.1\r\nHost: localhost\r\nX-Slow: "}
	beside(t, at, func() {
		for i, head := range heads {
			all := open(t, at, head, most+most/4)
			eventually(t, func() bool {
				return gauge(t, w, `weir_listener_refused_total{listener="listen",reason="caller_connections"}`) >= (i+1)*(most/4)
			})
			if n := gauge(t, w, `weir_listener_in_use{listener="listen",resource="connections"}`); n > most {
				t.Errorf("%q: %d connections, of %d", head, n, most)
			}
			all.close()
		}
	})
	w.Signal(syscall.SIGKILL) // the other weir needs the machine now
	at = bare(t, map[string]string{"/calm/": calmOf(t).upstream})
	besides(t, bareCalm, at, func() {
		for _, head := range heads {
			open(t, at, head, most+most/4).close()
		}
	})
}

// connections of one caller.
type connections []net.Conn

// open opens connections and sends the beginning of a request on each.
func open(t testing.TB, at, head string, n int) (all connections) {
	t.Helper()
	for range n {
		c, err := net.DialTimeout("tcp", at, patience)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, head)
		if all = append(all, c); len(all)%20 == 0 {
			time.Sleep(pause) // leaves time for the normal callers
		}
	}
	return all
}

func (all connections) close() {
	for _, c := range all {
		_ = c.Close()
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); {
		if time.Now().After(end) {
			t.Error("it does not come")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// hanging starts an upstream that does not respond during the test.
func hanging(t testing.TB) *httptest.Server {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	return s
}

// A crush is one caller with many requests in flight as HTTP/2 streams.
type crush struct {
	clients  []*http.Client
	wg       sync.WaitGroup
	refused  atomic.Int64
	answered atomic.Int64
	over     chan struct{} // closed after the expected number of refusals
	leave    context.CancelFunc
}

// begin starts n requests, with a number of streams per connection.
func (c *crush) begin(at string, n, streams, refused int) {
	var ctx context.Context
	ctx, c.leave = context.WithCancel(context.Background())
	c.over = make(chan struct{})
	for begun := 0; begun < n; {
		client := h2c()
		client.Timeout = 0
		c.clients = append(c.clients, client)
		for range streams {
			if begun++; begun%10 == 0 {
				time.Sleep(pause) // leaves time for the normal callers
			}
			c.wg.Go(func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+at+"/hang/x", nil)
				r.Header.Set("X-Weir-Token", "the-secret-of-evil")
				resp, err := client.Do(r)
				if err != nil {
					return
				}
				_ = text(resp)
				if resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "1" {
					if c.refused.Add(1) == int64(refused) {
						close(c.over)
					}
					return
				}
				c.answered.Add(1)
			})
		}
	}
}

// end cancels them.
func (c *crush) end() {
	c.leave()
	c.wg.Wait()
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

// One caller has as many requests in flight as possible, over HTTP/1.1 and in HTTP/2 streams. It gets half of the bound, and
// other callers are served.
func TestAttackRequestsInFlight(t *testing.T) {
	s := hanging(t)
	// Only the bounds of the listener may end hanging requests.
	w := served.Start(t, local+fmt.Sprintf(`
tokens: {evil: {env: EVIL}, good: {env: GOOD}}
upstreams:
  hang: {url: %q, concurrency: off, breaker: off, retry: off, timeouts: {headers: off, attempt: off, call: off}}
%s`, s.URL, bystander(t)), "EVIL=the-secret-of-evil", "GOOD=the-secret-of-good")
	at := w.Serve.Listen
	most := gauge(t, w, `weir_listener_max{listener="listen",resource="caller_requests"}`)
	streams := gauge(t, w, `weir_listener_max{listener="listen",resource="streams"}`)
	beside(t, at, func() {
		var c crush
		c.begin(at, most+500, streams, 500)
		select {
		case <-c.over:
		case <-time.After(patience):
			t.Errorf("%d were refused", c.refused.Load())
		}
		if n := gauge(t, w, `weir_listener_in_use{listener="listen",resource="caller_requests"}`); n != most {
			t.Errorf("%d requests of one caller are in flight, of %d", n, most)
		}
		if n := c.answered.Load(); n > 0 {
			t.Errorf("%d were answered", n)
		}
		c.end()
	}, "X-Weir-Token: the-secret-of-good")
	w.Signal(syscall.SIGKILL) // the other weir needs the machine now
	at = bare(t, map[string]string{"/hang/": s.URL, "/calm/": calmOf(t).upstream})
	besides(t, bareCalm, at, func() {
		var c crush
		c.begin(at, most+500, streams, 0)
		c.end()
	})
}
