package serve

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Calls that wait for a limit of any upstream proceed by priority, from the caller's header or the operation. Of three
// times twenty calls that arrive lowest class first, the calls of high priority proceed first.
func TestPrioritiesByHeaderOrOperation(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		set        func(r *http.Request, class string)
	}{
		{"header", `priority: "header:X-Class"`, func(r *http.Request, class string) { r.Header.Set("X-Class", class) }},
		{"operation", `operations: {low: {path: /low, priority: low}, high: {path: /high, priority: high}}`, func(r *http.Request, class string) { r.URL.Path += class }},
		{"header before operation", `priority: "header:X-Class", operations: {all: {path: /, priority: low}}`,
			func(r *http.Request, class string) {
				if class == "high" {
					r.Header.Set("X-Class", class)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playPriorities(t, c.yaml, c.set) })
		})
	}
}

func playPriorities(t *testing.T, yaml string, set func(*http.Request, string)) {
	n := memnet.New()
	defer n.Close()
	var mu sync.Mutex
	var came []string
	up := n.Serve("api.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		came = append(came, r.Header.Get("X-Kind"))
	}))
	stop := serveInside(t, n, "upstreams: {up: {url: \""+up+"\", limits: {all: {rate: 1/s, burst: 1}}, max_wait: 5m, timeouts: {call: 10m}, "+yaml+"}}\n")
	client := &http.Client{Transport: n.Transport()}
	var wg sync.WaitGroup
	for _, class := range strings.Fields(strings.Repeat("low ", 20) + strings.Repeat("normal ", 20) + strings.Repeat("high ", 20)) {
		wg.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/up/", nil)
			r.Header.Set("X-Kind", class)
			set(r, class)
			resp, err := client.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", resp, err)
				return
			}
			_ = resp.Body.Close()
		})
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	stop()
	first := strings.Join(came[1:22], " ") // the very first one uses the burst
	if high, low := strings.Count(first, "high"), strings.Count(first, "low"); len(came) != 60 || high < 14 || low > 2 {
		t.Errorf("of %d calls the first 21 that waited are %s", len(came), first)
	}
}

// Waiting calls of low priority leave half of the connections and requests to other calls. Excess calls get 503, and a
// call of high priority is admitted, even from the same address.
func TestWaitingLowPriorityLeavesHalfOfTheConnections(t *testing.T) {
	for name, yaml := range map[string]string{
		"slot":            `concurrency: 1, priority: "header:X-Class"`,
		"limit":           `limits: {all: {rate: 1/s, burst: 1}}, priority: "header:X-Class"`,
		"operation, slot": `concurrency: 1, operations: {low: {path: /low, priority: low}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLowWaiting(t, yaml) })
		})
	}
}

func playLowWaiting(t *testing.T, yaml string) {
	n := memnet.New()
	defer n.Close()
	up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(900 * time.Millisecond) }))
	stop := serveInside(t, n, "bounds: {connections: 80, requests: 80}\nupstreams: {up: {url: \""+up+"\", max_wait: 1m, "+yaml+"}}\n")
	client := &http.Client{Transport: n.Transport()}
	status := func(class string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/up/"+class, nil)
		r.Header.Set("X-Class", class)
		resp, err := client.Do(r)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	var wg sync.WaitGroup
	var crowded, others atomic.Int64
	for range 38 { // one address may have 40
		wg.Go(func() {
			if begin := time.Now(); status("low") == http.StatusServiceUnavailable && time.Since(begin) < 100*time.Millisecond {
				crowded.Add(1)
			} else {
				others.Add(1)
			}
		})
		time.Sleep(time.Millisecond)
	}
	if got := crowded.Load(); got != 17 {
		t.Errorf("%d of low priority got 503 immediately, want 17: one is sent and 20 wait", got)
	}
	for range 5 {
		wg.Go(func() {
			if s := status("high"); s == http.StatusServiceUnavailable || s == 0 {
				t.Errorf("a call of high priority got %d", s)
			}
		})
	}
	wg.Wait()
	if got := others.Load(); got != 21 {
		t.Errorf("%d of low priority waited or went, want 21", got)
	}
	stop()
}
