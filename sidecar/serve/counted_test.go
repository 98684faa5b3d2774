package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// begin starts a sidecar with a file in virtual time, in the network c.n.
func (c *counting) begin(t *testing.T, file string) {
	t.Helper()
	c.file = filepath.Join(t.TempDir(), "weir.yaml")
	c.write(t, file)
	var err error
	if c.s, err = New(c.file, Options{Log: io.Discard, Env: noEnv, Listen: c.n.Hear, Dial: c.n.Dial}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.s.Run(ctx, nil, nil) }()
	c.client = &http.Client{Transport: c.n.Transport()}
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.n.Close()
	}
}

// A counting is a sidecar that counts callers, in front of an API that records requests.
type counting struct {
	n      *memnet.Network
	s      *Server
	file   string
	client *http.Client
	stop   func()
	heard  []http.Header // headers of the requests that the API received
}

func (c *counting) write(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(c.file, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newCounting() *counting {
	c := &counting{n: memnet.New()}
	c.n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.heard = append(c.heard, r.Header)
		if strings.HasSuffix(r.URL.Path, "/broken") {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/throttled") {
			w.Header().Set("X-Amzn-Errortype", "ThrottlingException")
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "fine")
	}))
	return c
}

// get requests a path and returns status and body.
func (c *counting) get(t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const countingFile = `
listen: localhost:80
admin: off
callers: {limits: {global: off, user-day: off, user: {rate: 3/h, burst: 3, scope: user, plans: {premium: 2x}}}}
upstreams:
  api: {url: "http://api.test", callers: true}
  other: {url: "http://api.test", callers: true, pass_headers: [X-User]}
  once: {url: "http://api.test", callers: true, retry: {attempts: 1}}
  open: {url: "http://api.test"}
`

// Requests to upstreams without language models are charged to their callers as well, once each, unless the upstream
// fails. The headers that identify callers are not forwarded.
func TestCallersOfEveryUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		c.begin(t, countingFile)
		defer c.stop()
		for i, tt := range []struct {
			url    string
			header []string
			status int
			says   string
		}{
			{"http://localhost/api/broken", []string{"X-User", "ann"}, 501, ""},     // costs nothing
			{"http://localhost/once/throttled", []string{"X-User", "ann"}, 400, ""}, // costs nothing
			{"http://localhost/api/x", []string{"X-User", "ann"}, 200, "fine"},
			{"http://localhost/other/x", []string{"X-User", "ann"}, 200, "fine"},
			{"http://localhost/api/x", []string{"X-User", "ann"}, 200, "fine"},
			{"http://localhost/api/x", []string{"X-User", "ann"}, 429, `"limit":"user"`},
			{"http://localhost/other/x", []string{"X-User", "ann"}, 429, `"limit":"user"`},
			{"http://localhost/open/x", []string{"X-User", "ann"}, 200, "fine"}, // is not counted
			{"http://localhost/api/x", []string{"X-User", "bob"}, 200, "fine"},
			{"http://localhost/api/x", []string{"X-User", "eve", "X-Plan", "premium"}, 200, "fine"},
		} {
			heard := len(c.heard)
			status, body := c.get(t, tt.url, tt.header...)
			if status != tt.status || !strings.Contains(body, tt.says) {
				t.Errorf("%d: %s: %d %s, want %d %s", i, tt.url, status, body, tt.status, tt.says)
			}
			if sent := len(c.heard) - heard; (status == 429) != (sent == 0) {
				t.Errorf("%d: %s: %d requests were sent", i, tt.url, sent)
			}
			if status == 200 && (c.heard[heard].Get("X-User") != "") == strings.Contains(tt.url, "/api/") {
				t.Errorf("%d: %s: the API was told X-User: %q", i, tt.url, c.heard[heard].Get("X-User"))
			}
		}
	})
}

// Programs ask decide for the remaining units of a user: at each upstream, with or without limits for users, and of the
// limits of callers.
func TestLimitsOfUserAtEveryUpstreamAndOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		c.begin(t, countingFile+`  keyed: {url: "http://api.test", keys: {user: "header:X-User"}, limits: {own: {rate: 5/h, burst: 5, scope: user}}}
decide: {listen: "127.0.0.1:82"}
`)
		defer c.stop()
		c.get(t, "http://localhost/api/x", "X-User", "ann")
		c.get(t, "http://localhost/keyed/x", "X-User", "ann")
		for upstream, want := range map[string]string{
			"api": `"limits":[]`, "open": `"limits":[]`, "keyed": `"limit":"own","key":"ann","unit":"requests","left":4`,
			"callers": `"limit":"user","key":"ann","unit":"requests","left":2`,
		} {
			status, body := c.get(t, "http://127.0.0.1:82/v1/limits?user=ann&upstream="+upstream)
			if status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s, want 200 and %s", upstream, status, body, want)
			}
		}
		if status, body := c.get(t, "http://127.0.0.1:82/v1/limits?upstream=open&usr=ann"); status != 400 || !strings.Contains(body, "want upstream, operation, user") {
			t.Errorf("%d %s", status, body)
		}
	})
}
