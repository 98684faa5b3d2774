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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// get makes a call through weir and returns its status.
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

// here returns the number of calls that are in flight or wait for a slot.
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

// With the defaults, two failing calls with all their attempts do not stop other calls.
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

// Calls during a short stall of the upstream are all answered after it, as without weir, even if they exceed the initial bound
// of calls in flight.
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

// A failure of one operation or key does not stop other calls, with the released program and its default breaker.
func TestWhatIsBrokenClosesItselfAlone(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "bad" || r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(api.Close)
	for name, yaml := range map[string]string{
		"operation": "    operations: {bad: {path: /bad}, fine: {path: /fine}}\n",
		"key":       "    keys: {tenant: 'header:X-Tenant'}\n    breaker: {scope: tenant}\n",
	} {
		for _, preset := range []string{"", "    preset: http\n"} {
			w := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams:\n  api:\n    url: %s\n%s%s", api.URL, preset, yaml))
			call := func(what string) (status int, refused string) {
				path := "/fine"
				if name == "operation" {
					path = "/" + what
				}
				r, _ := http.NewRequest(http.MethodPost, "http://"+w.Serve.Listen+"/api"+path, nil) // not retried, so that it takes no time
				if name == "key" {
					r.Header.Set("X-Tenant", what)
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return 0, ""
				}
				defer resp.Body.Close()
				return resp.StatusCode, resp.Header.Get("X-Weir-Refused")
			}
			since := time.Now()
			for n := range 20 {
				status, refused := call("bad")
				if refused == "circuit_open" && n >= 10 && time.Since(since) >= 5*time.Second {
					break // the machine stalled; ten in a row in this time are enough
				}
				if status != http.StatusInternalServerError {
					t.Errorf("%s: what is broken is answered with %d %s", name, status, refused)
				}
			}
			if status, refused := call("bad"); status != http.StatusServiceUnavailable || refused != "circuit_open" {
				t.Errorf("%s: what is broken is answered with %d %q after 20 failures, want circuit_open", name, status, refused)
			}
			for range 20 {
				if status, refused := call("fine"); status != http.StatusOK {
					t.Errorf("%s: another is answered with %d %s", name, status, refused)
				}
			}
		}
	}
}

// A fault that ends within a client's retry schedule costs no more good calls through weir with the preset than with the client
// alone. The client is the unmodified AWS SDK.
func TestNoFewerGoodCallsThanTheClientAlone(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		status int
		code   string
	}{
		"throttled": {http.StatusServiceUnavailable, "SlowDown"},
		"broken":    {http.StatusInternalServerError, "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const calls = 10
			play := func(through bool) (good int) {
				var mu sync.Mutex
				var begun time.Time
				api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					if begun.IsZero() {
						begun = time.Now()
					}
					passed := time.Since(begun) > 200*time.Millisecond
					mu.Unlock()
					if !passed {
						refuse(w, fault.status, fault.code, "not now")
					}
				}))
				defer api.Close()
				address := api.URL
				if through {
					w := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams:\n  s3: {preset: s3, url: %q, routes: [{path: /}]}\n", api.URL))
					address = "http://" + w.Serve.Listen
				}
				c := newClient(t, address)
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						_, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("key")})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							good++
						}
					})
				}
				wg.Wait()
				return good
			}
			if alone, through := play(false), play(true); through < alone || through == 0 {
				t.Errorf("%d of %d calls are good through weir, %d without", through, calls, alone)
			}
		})
	}
}
