//go:build unix

package alerts

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/learn"
)

// weir learn finds the limit of an upstream in the metrics that Prometheus scraped from weir.
func TestPrometheusTellsLearnTheLimit(t *testing.T) {
	t.Parallel()
	const rate, burst = 30, 10
	var mu sync.Mutex
	left, last := float64(burst), time.Now()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		left, last = min(burst, left+rate*now.Sub(last).Seconds()), now
		if left < 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		left--
	}))
	t.Cleanup(up.Close)
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams: {api: {url: %q, retry: off, breaker: off, max_wait: off, concurrency: off}}\n", up.URL)
	w := served.Start(t, text)
	p := newWatch(t, w.Serve.Admin, "", []byte("groups: []\n"))
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond): // each makes 20 calls a second
				}
				if resp, err := http.Get("http://" + w.Serve.Listen + "/api/x"); err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	}
	defer callers.Wait()
	defer close(stop)
	var found []learn.Finding
	// If the machine is too slow for callers or scrapes, some steps do not use the complete limit.
	defer func() {
		if t.Failed() {
			t.Logf("found %+v", found)
		}
	}()
	p.until("the limit is found, but for a tenth", func() bool {
		l := learn.New()
		if err := l.Prometheus(t.Context(), learn.Prometheus{URL: "http://" + p.addr}, learn.Span{From: time.Now().Add(-time.Minute), To: time.Now(), Step: 5 * time.Second}); err != nil {
			t.Fatal(err)
		}
		found = l.Findings()
		if len(found) != 1 || len(found[0].Limits) != 1 {
			return false
		}
		got := found[0].Limits[0].Rate.PerSecond()
		return got > 0.9*rate && got < 1.1*rate
	})
}
