//go:build unix

package attack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/served"
)

// gauge is a metric of a running weir.
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

// One caller opens more connections than there may be, which say nothing or begin a head and do not end
// it: there are never more than there may be, and who asks something is served.
func TestAttackConnections(t *testing.T) {
	w := served.Start(t, local+"upstreams:\n"+bystander(t))
	at := w.Serve.Listen
	most := gauge(t, w, `weir_listener_max{listener="listen",of="caller_connections"}`)
	if n := gauge(t, w, `weir_listener_max{listener="listen",of="connections"}`); most < 100 || most > n/2 {
		t.Fatalf("%d connections of one caller, %d in all", most, n)
	}
	turned := 0
	beside(t, at, func() {
		for _, head := range []string{"", "GET /calm/x HTTP/1.1\r\nHost: localhost\r\nX-Slow: "} {
			var all []net.Conn
			for range most + most/4 {
				c, err := net.DialTimeout("tcp", at, patience)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(c, head)
				if all = append(all, c); len(all)%20 == 0 {
					time.Sleep(pause) // the machine is the calm callers', too
				}
			}
			turned += most / 4
			eventually(t, func() bool {
				return gauge(t, w, `weir_turned_away_total{listener="listen",why="caller_connections"}`) >= turned
			})
			if n := gauge(t, w, `weir_listener_in_use{listener="listen",of="connections"}`); n > most {
				t.Errorf("%q: %d connections, of %d", head, n, most)
			}
			for _, c := range all {
				_ = c.Close()
			}
		}
	})
}

// eventually waits for something.
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

// One caller has as many requests in flight as it can, over HTTP/1.1 and in the streams of HTTP/2: it gets
// half of what there may be, and others what they ask for.
func TestAttackRequestsInFlight(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	w := served.Start(t, local+fmt.Sprintf(`
tokens: {evil: {env: EVIL}, good: {env: GOOD}}
upstreams:
  hang: {url: %q, concurrency: off, breaker: off, retry: off, timeouts: {headers: off, attempt: off, call: off}}
%s`, s.URL, bystander(t)), "EVIL=the-secret-of-evil", "GOOD=the-secret-of-good")
	at := w.Serve.Listen
	most := gauge(t, w, `weir_listener_max{listener="listen",of="caller_requests"}`)
	streams := gauge(t, w, `weir_listener_max{listener="listen",of="streams"}`)
	beside(t, at, func() {
		var refused, answered atomic.Int64
		var wg sync.WaitGroup
		var clients []*http.Client
		over := make(chan struct{})
		for begun := 0; begun < most+500; {
			client := h2c()
			client.Timeout = 0
			clients = append(clients, client)
			for range streams {
				if begun++; begun%10 == 0 {
					time.Sleep(pause) // the machine is the calm callers', too
				}
				wg.Go(func() {
					r, _ := http.NewRequest("GET", "http://"+at+"/hang/x", nil)
					r.Header.Set("X-Weir-Token", "the-secret-of-evil")
					resp, err := client.Do(r)
					if err != nil {
						return
					}
					_ = text(resp)
					if resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "1" {
						if refused.Add(1) == 500 {
							close(over)
						}
						return
					}
					answered.Add(1)
				})
			}
		}
		select {
		case <-over:
		case <-time.After(patience):
			t.Errorf("%d were refused", refused.Load())
		}
		if n := gauge(t, w, `weir_listener_in_use{listener="listen",of="caller_requests"}`); n != most {
			t.Errorf("%d requests of one caller are in flight, of %d", n, most)
		}
		for _, c := range clients {
			c.Transport.(*http.Transport).CloseIdleConnections()
		}
		if answered.Load() > 0 {
			t.Errorf("%d were answered", answered.Load())
		}
		s.CloseClientConnections()
		wg.Wait()
	}, "X-Weir-Token: the-secret-of-good")
}
