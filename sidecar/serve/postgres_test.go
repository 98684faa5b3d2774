package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A town is an upstream with weirs that share its deliveries in a database.
type town struct {
	*testing.T
	db    *servers.Server
	queue *servers.Server // the SQS emulator; nil with a database
	file  string

	mu   sync.Mutex
	down bool
	got  map[string]int // number of requests by body
}

func (o *town) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	o.got[string(body)]++
}

func (o *town) is(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

func newTown(t *testing.T) *town {
	db := servers.Postgres(t)
	return townAt(t, db, db.PostgresURL())
}

// townAt returns a town whose weirs reach the database at a URL.
func townAt(t *testing.T, db *servers.Server, at string) *town {
	o := &town{T: t, db: db, file: filepath.Join(t.TempDir(), "weir.yaml"), got: make(map[string]int)}
	up := httptest.NewServer(o)
	t.Cleanup(up.Close)
	text := fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {postgres: {url: '%s'}}
upstreams:
  box:
    url: %s
    deliver_schedule: messaging
    routes: [{path: /box/, strip: true, deliver: true}]
`, at, up.URL)
	put(t, o.file, text)
	return o
}

func (o *town) load() *config.File { return load(o, o.file) }

// weir starts a weir.
func (o *town) weir() *Running {
	o.Helper()
	run, err := Start(o.file, Options{Env: os.LookupEnv})
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = run.Close() })
	return run
}

// lacks starts a weir whose deliveries' store is unsuitable, and checks its problem report.
func (o *town) lacks(want string) {
	o.Helper()
	w := o.weir()
	defer w.Close()
	if all := w.troubled(); len(all) != 1 || all[0].With != status.WithDeliveries || !strings.Contains(all[0].Error, want) {
		o.Errorf("the problems are %+v, want one with %q", all, want)
	}
	if resp, _ := o.send(w, "direct", ""); resp.StatusCode != http.StatusOK {
		o.Errorf("a direct call gets %s", resp.Status)
	}
	if resp, text := o.send(w, "later", "respond-async"); resp.StatusCode != http.StatusServiceUnavailable {
		o.Errorf("a request to be delivered gets %s %s", resp.Status, text)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.got)
}

func (o *town) init() (said string) {
	o.Helper()
	var b strings.Builder
	if err := Init(context.Background(), &b, o.load(), Options{Env: os.LookupEnv}); err != nil {
		o.Fatal(err)
	}
	return b.String()
}

// send submits a request. prefer may ask to wait for the delivery.
func (o *town) send(to *Running, body, prefer string) (*http.Response, string) {
	o.Helper()
	r, err := http.NewRequest("POST", "http://"+to.Addr()+"/box/in", strings.NewReader(body))
	if err != nil {
		o.Fatal(err)
	}
	r.Header.Set("Prefer", prefer)
	r.Header.Set("Idempotency-Key", body)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		o.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp, string(text)
}

// hands is send with retries by the same key while the result is unknown. That happens only if the machine stalls for
// the second that an accept has.
func (o *town) hands(to *Running, body, prefer string) (*http.Response, string) {
	o.Helper()
	for try := 0; ; try++ {
		begin := time.Now()
		resp, text := o.send(to, body, prefer)
		unknown := resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(text, "whether the request was stored is unknown")
		if !unknown || time.Since(begin) < 900*time.Millisecond || try == 10 {
			return resp, text
		}
		o.Log(text)
	}
}

// Weirs that share a database deliver each other's requests, each once, and take over the deliveries that a weir
// leaves.
func TestTwoWeirsShareADatabase(t *testing.T) {
	o := newTown(t)
	o.lacks("weir store init")
	for _, want := range []string{"its tables were created", "nothing had to be changed"} {
		if said := o.init(); !strings.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	a, b := o.weir(), o.weir()
	var wg sync.WaitGroup
	for i := range 40 {
		to := []*Running{a, b}[i%2]
		wg.Go(func() {
			if resp, text := o.hands(to, fmt.Sprint("m", i), "respond-async, wait=60"); resp.StatusCode != 200 || !strings.Contains(text, `"completed"`) {
				t.Errorf("%d: %s %s", i, resp.Status, text)
			}
		})
	}
	wg.Wait()
	for i := range 40 { // at either weir
		if resp, _ := o.hands([]*Running{b, a}[i%2], fmt.Sprint("m", i), "respond-async"); resp.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%d again: %s", i, resp.Status)
		}
	}

	o.is(true)
	resp, text := o.hands(a, "left", "respond-async")
	if resp.StatusCode != 202 {
		t.Fatalf("%s %s", resp.Status, text)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	o.is(false)
	if resp, text := o.hands(b, "left", "respond-async, wait=60"); resp.StatusCode != 200 || !strings.Contains(text, `"completed"`) {
		t.Errorf("what was left: %s %s", resp.Status, text)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for body, n := range o.got {
		if n != 1 {
			t.Errorf("%s was sent %d times", body, n)
		}
	}
	if len(o.got) != 41 {
		t.Errorf("%d were sent, want 41", len(o.got))
	}
}
