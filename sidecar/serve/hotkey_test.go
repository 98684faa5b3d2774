package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// withRemote runs a sidecar in virtual time with the given latencies of store and upstream.
func withRemote(t *testing.T, takes, upstream time.Duration, yaml string, play func(client *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(upstream) }))
		file := filepath.Join(t.TempDir(), "weir.yaml")
		yaml = "listen: localhost:80\nadmin: off\ndecide: {listen: 127.0.0.1:80}\nstore: {memory: true}\n" + strings.ReplaceAll(yaml, "UPSTREAM", up)
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := New(file, Options{Log: io.Discard, Env: noEnv, Listen: n.Hear, Dial: n.Dial, Store: func(s fleet.Store) fleet.Store {
			return &remote{Store: s, takes: takes}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, nil, nil) }()
		time.Sleep(5 * time.Second)
		transport := n.Transport()
		transport.MaxConnsPerHost = 1000 // a sidecar limits the connections of one address
		client := &http.Client{Transport: transport}
		play(client)
		client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // for the last heartbeats
	})
}

// send makes a request and returns its status.
func send(t *testing.T, client *http.Client, method, url, body string, header map[string]string) int {
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestHotKeyDelaysNoOtherKeyInSidecar checks that 5,000 requests a second for one tenant raise the p99 of other tenants
// at most by a factor of 1.2. Time is virtual, so that only waits count.
func TestHotKeyDelaysNoOtherKeyInSidecar(t *testing.T) {
	for _, maxWait := range []string{"1s", "off"} {
		t.Run("max_wait "+maxWait, func(t *testing.T) {
			calm, hot := tenantsBeside(t, maxWait, 0), tenantsBeside(t, maxWait, 5000)
			at := len(calm) * 99 / 100
			t.Logf("p99 %v without the hot key, %v beside it", calm[at], hot[at])
			if hot[at]*10 > calm[at]*12 {
				t.Errorf("p99 is %v, and %v beside the hot key", calm[at], hot[at])
			}
		})
	}
}

// tenantsBeside returns the sorted times of calm tenants' requests. Meanwhile another tenant makes hot requests a
// second.
func tenantsBeside(t *testing.T, maxWait string, hot int) (took []time.Duration) {
	yaml := "upstreams:\n  api: {url: \"UPSTREAM\", max_wait: " + maxWait + `, keys: {tenant: "header:X-Tenant"}, limits: {tenant: {rate: 1000/s, burst: 100, scope: tenant}}}`
	withRemote(t, 2*time.Millisecond, time.Millisecond, yaml, func(client *http.Client) {
		get := func(tenant string) int {
			return send(t, client, "GET", "http://localhost/api/", "", map[string]string{"X-Tenant": tenant})
		}
		var requests sync.WaitGroup
		for i := range hot / 25 { // each sends 25 requests a second
			requests.Go(func() {
				time.Sleep(time.Duration(i) * 197 * time.Microsecond)
				for range 50 {
					begin := time.Now()
					get("hot")
					time.Sleep(max(0, 40*time.Millisecond-time.Since(begin)))
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		var mu sync.Mutex
		for i := range 10 {
			requests.Go(func() {
				time.Sleep(time.Duration(i) * 1300 * time.Microsecond)
				for range 18 {
					begin := time.Now()
					if status := get(fmt.Sprint("calm", i)); status != http.StatusOK {
						t.Errorf("status %d for a calm tenant", status)
					}
					mu.Lock()
					took = append(took, time.Since(begin))
					mu.Unlock()
					time.Sleep(97 * time.Millisecond)
				}
			})
		}
		requests.Wait()
	})
	slices.Sort(took)
	return took
}

// TestBurstsWithinLimitAreNotRefusedBySidecar checks that no request of a burst within the limit is refused. It varies
// the store's latency and the limits of callers, for calls and decisions.
func TestBurstsWithinLimitAreNotRefusedBySidecar(t *testing.T) {
	for _, takes := range []time.Duration{0, 20 * time.Millisecond} {
		for _, callers := range []bool{true, false} {
			for _, requests := range []int{300, 3000} {
				for _, path := range []string{"/api/", "/v1/acquire"} {
					t.Run(fmt.Sprintf("%v/callers %v/%d %s", takes, callers, requests, path), func(t *testing.T) {
						yaml := fmt.Sprintf("callers: {limits: {global: {rate: 2000/s, burst: 4000}, user: off, user-day: off}}\n"+
							"upstreams:\n  api: {url: \"UPSTREAM\", callers: %v, limits: {all: {rate: 2000/s, burst: 4000}}}", callers)
						withRemote(t, takes, time.Millisecond, yaml, func(client *http.Client) {
							var mu sync.Mutex
							refused := 0
							var all sync.WaitGroup
							for range requests {
								all.Go(func() {
									status := 0
									if path == "/api/" {
										status = send(t, client, "GET", "http://localhost/api/", "", nil)
									} else {
										status = send(t, client, "POST", "http://127.0.0.1/v1/acquire", `{"upstream":"api"}`, map[string]string{"Content-Type": "application/json"})
									}
									if status != http.StatusOK {
										mu.Lock()
										refused++
										mu.Unlock()
									}
								})
							}
							all.Wait()
							if refused > 0 {
								t.Errorf("%d of %d requests were refused", refused, requests)
							}
						})
					})
				}
			}
		}
	}
}
