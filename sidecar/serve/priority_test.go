package serve

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Whoever waits for the limit of any upstream goes by its priority, which the caller's header or the operation
// says: of three times twenty calls that came one class after the other, the lowest first, the high ones go first.
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
	first := strings.Join(came[1:22], " ") // the very first has the burst
	if high, low := strings.Count(first, "high"), strings.Count(first, "low"); len(came) != 60 || high < 14 || low > 2 {
		t.Errorf("of %d calls the first 21 that waited are %s", len(came), first)
	}
}
