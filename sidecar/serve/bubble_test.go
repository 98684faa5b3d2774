package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// insideEnv is the environment of a weir in a bubble.
func insideEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"UP_KEY": "Bearer ours", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "HASH_SECRET": "hash-secret-0123456789abcdef", "TOKEN_A": "token-a-0123456789abcdef", "TOKEN_B": "token-b-0123456789abcdef",
	}[name]
	return v, ok
}

// serveInside runs weir serve with a file in a bubble of testing/synctest. It listens at localhost and reaches the
// hosts of the network.
func serveInside(t *testing.T, n *memnet.Network, yaml string) (stop func()) {
	t.Helper()
	return serveTelling(t, n, yaml, io.Discard)
}

// serveTelling is serveInside with a log.
func serveTelling(t *testing.T, n *memnet.Network, yaml string, log io.Writer) (stop func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if !strings.Contains(yaml, "admin: ") {
		yaml = "admin: off\n" + yaml
	}
	if err := os.WriteFile(file, []byte("listen: localhost:80\n"+yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(file, Options{Log: log, Env: insideEnv, Listen: n.Hear, Dial: n.Dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil, nil) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A complete sidecar runs in virtual time: ten minutes of calls at its limit take no real time.
func TestASidecarInABubbleKeepsItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var mu sync.Mutex
		var came []time.Time
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			came = append(came, time.Now())
			mu.Unlock()
			time.Sleep(30 * time.Millisecond)
		}))
		stop := serveInside(t, n, "upstreams: {up: {url: \""+up+"\", limits: {all: 5/s}, max_wait: 10s}}\n")
		client := &http.Client{Transport: n.Transport()}
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for time.Since(begin) < 10*time.Minute {
					resp, err := client.Get("http://localhost/up/")
					if err != nil || resp.StatusCode != 200 {
						t.Errorf("%v, %v", resp, err)
						return
					}
					_ = resp.Body.Close()
				}
			})
		}
		wg.Wait()
		stop()
		for i := range came {
			if i >= 10 && came[i].Sub(came[i-10]) < time.Second { // a burst of five, and five more
				t.Fatalf("eleven calls in %v", came[i].Sub(came[i-10]))
			}
		}
		if len(came) < 2999 {
			t.Errorf("%d calls in ten minutes, want 3000", len(came))
		}
	})
}

// A waiting call is refused when weir stops. The stop does not wait for the drain time.
func TestWhoWaitsIsRefusedWhenWeirStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		stop := serveInside(t, n, "upstreams: {up: {url: \""+up+"\", limits: {all: {rate: 6/min, burst: 1}}}}\n")
		client := &http.Client{Transport: n.Transport()}
		begin, stopped := time.Now(), make(chan bool)
		time.AfterFunc(500*time.Millisecond, func() { stop(); close(stopped) })
		for i := range 2 {
			resp, err := client.Get("http://localhost/up/")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := resp.Header.Get("X-Weir-Refused"); i == 1 && (resp.StatusCode != 503 || got != "shutting_down" || time.Since(begin) > time.Second) {
				t.Errorf("%s %q after %v", resp.Status, got, time.Since(begin))
			}
		}
		<-stopped
	})
}
