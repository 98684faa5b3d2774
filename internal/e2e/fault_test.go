//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/internal/served"
	"github.com/seed1158cd35/weir/status"
)

// get makes a call through weir and says its status.
func get(t *testing.T, w *served.Process, path string) int {
	t.Helper()
	resp, err := http.Get("http://" + w.Serve.Listen + path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// here is how many calls are in flight or wait for a slot.
func here(t *testing.T, w *served.Process) (n int) {
	t.Helper()
	out, code := say(t, "status", "-json", "-admin", w.Serve.Admin)
	var r status.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("weir status: %v in %s", err, out)
	}
	for _, f := range r.Upstreams[0].Flights {
		n += f.InFlight + f.Waiting
	}
	return n
}

// Two calls of what is broken, with all their attempts, stop nobody else, with what ships.
func TestTwoCallsOfWhatIsBrokenStopNobodyElse(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(api.Close)
	for _, preset := range []string{"", "    preset: http\n"} {
		w := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams:\n  api:\n    url: %s\n%s", api.URL, preset))
		for range 2 {
			if got := get(t, w, "/api/broken"); got != http.StatusInternalServerError {
				t.Errorf("%q: the broken one is answered with %d", preset, got)
			}
		}
		for range 20 {
			if got := get(t, w, "/api/fine"); got != http.StatusOK {
				t.Errorf("%q: another is answered with %d", preset, got)
			}
		}
	}
}

// Calls that come while the upstream stands still are all answered when it goes on, as
// without weir: more of them than the bound of what is in flight lets in at first.
func TestAShortStallCostsNoCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var still chan struct{}
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		wait := still
		mu.Unlock()
		if wait != nil {
			<-wait
		}
	}))
	t.Cleanup(api.Close)
	w := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  api:\n    url: %s\n    preset: http\n", api.URL))
	for range 50 {
		get(t, w, "/api/x")
	}
	mu.Lock()
	still = make(chan struct{})
	mu.Unlock()
	var calls sync.WaitGroup
	for range 60 {
		calls.Go(func() {
			if got := get(t, w, "/api/x"); got != http.StatusOK {
				t.Errorf("a call within the stall is answered with %d", got)
			}
		})
	}
	goOn := sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		close(still)
		still = nil
	})
	defer goOn()
	until(t, "all are at the upstream, or wait in weir", func() bool { return here(t, w) >= 60 || t.Failed() })
	goOn()
	calls.Wait()
}
