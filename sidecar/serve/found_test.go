package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// adminHas requests a path from the admin listener, and reports whether the response contains a text.
func (s *sidecar) adminHas(t *testing.T, path, text string) bool {
	t.Helper()
	resp, err := http.Get("http://" + s.admin.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var flat bytes.Buffer
	if json.Compact(&flat, b) == nil {
		b = flat.Bytes()
	}
	return strings.Contains(string(b), text)
}

// If the store's password is wrong at the start, weir retries until the store responds. Log, status and metrics report
// the cause and the recovery.
func TestTheStartSaysWhatIsWrongWithTheStore(t *testing.T) {
	srv := servers.Redis(t, "--requirepass", "correct")
	s := start(t, "http://127.0.0.1:1", fmt.Sprintf("store: {redis: %q}", srv.URL()))
	line := s.log.waitFor(t, "store not reached")
	if text := fmt.Sprint(line["error"]); !strings.Contains(text, "NOAUTH") || !strings.Contains(text, "requires a password") {
		t.Errorf("the log says %q, want what is wrong and what to do", text)
	}
	if !s.adminHas(t, "/v1/status", `"reached":false,`) || !s.adminHas(t, "/v1/status", "requires a password") || !s.adminHas(t, "/metrics", "weir_store_reached 0") {
		t.Error("the status or the metrics do not say that the store was not reached")
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "AUTH correct\r\nCONFIG SET requirepass \"\"\r\n"); err != nil {
		t.Fatal(err)
	}
	s.log.waitFor(t, "store reached")
	if !s.adminHas(t, "/v1/status", `"reached":true,`) || !s.adminHas(t, "/metrics", "weir_store_reached 1") {
		t.Error("the status or the metrics do not say that the store was reached")
	}
}

// initialise runs Init with the file, which marks the store as new.
func initialise(t *testing.T, file string) {
	t.Helper()
	f, err := config.Load(file, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine, a connection may time out.
	eventually(t, "the store is made ready", func() bool {
		err := Init(t.Context(), io.Discard, f, Options{Env: noEnv})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// anotherZone returns a time zone in which no day or month is about to end. Otherwise a quota's window could end during
// a test.
func anotherZone() string {
	if time.Now().UTC().Hour() == 23 {
		return "Asia/Tokyo"
	}
	return "UTC"
}

// In a new store, a quota counts as used up until its window ends. weir reports this, and that it is over after store
// init.
func TestAColdQuotaIsNotSilent(t *testing.T) {
	srv := servers.Redis(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\n"+
		"upstreams: {up: {url: \"http://127.0.0.1:1\", limits: {day: {amount: 25, every: day, zone: %s}, fast: 100/s}}}\n", srv.URL(), anotherZone())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	line := s.log.waitFor(t, "store is cold")
	if line["upstream"] != "up" || line["limit"] != "day" || line["quota"] != true || !strings.Contains(fmt.Sprint(line["help"]), "weir store init") {
		t.Errorf("the log says %v", line)
	}
	if !s.adminHas(t, "/v1/status", `"upstream":"up","limit":"day","quota":true`) || !s.adminHas(t, "/metrics", `weir_store_cold{upstream="up"} 1`) {
		t.Error("the status or the metrics do not say that the store is cold")
	}
	initialise(t, file)
	s.log.waitFor(t, "store has usage of limits")
	if !s.adminHas(t, "/metrics", `weir_store_cold{upstream="up"} 0`) || s.adminHas(t, "/v1/status", `"cold"`) {
		t.Error("the status or the metrics still say that the store is cold")
	}
}

// cold makes a call that the cold store refuses.
func cold(t *testing.T, s *sidecar, path string) told {
	t.Helper()
	resp, err := http.Get("http://" + s.address() + path)
	r := hear(t, resp, err)
	line := s.log.waitFor(t, "refused")
	b, err := json.Marshal(line)
	if err == nil {
		err = json.Unmarshal(b, &r.line)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.agrees(t, 1)
	if r.details.Lack != "cold" || r.details.Store != "heard" || !strings.Contains(r.message, "run weir store init") {
		t.Errorf("%s: the refusal does not say that the store is cold: %s %+v", path, r.message, r.details)
	}
	return r
}

// A call that is refused before store init consumes no units of a quota and leaves no record. After init, every process
// can use the complete quota immediately. The refusals contain reason and time, and status and metrics count down.
func TestARefusalBeforeInitTakesNothing(t *testing.T) {
	srv := servers.Redis(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n"+
		"  day: {url: %[2]q, max_wait: off, limits: {all: {amount: 25, every: month}}}\n"+
		"  bucket: {url: %[2]q, max_wait: off, limits: {all: 10/s}}\n"+
		"  rolling: {url: %[2]q, max_wait: off, limits: {all: {rate: 25/min, shape: rolling}}}\n", srv.URL(), up.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	for range 3 {
		s.log.waitFor(t, "store is cold")
	}
	for path, least := range map[string]int64{"/day/": 0, "/bucket/": 5_000, "/rolling/": 60_000} {
		for range 3 {
			if r := cold(t, s, path); r.details.RetryAfterMS < least {
				t.Errorf("%s: told to come again in %d ms, when nothing is there yet", path, r.details.RetryAfterMS)
			}
		}
	}
	lasts := func() (all []int64) {
		for _, c := range s.finder.status().Cold {
			all = append(all, c.LastsMS)
		}
		return all
	}
	if before := lasts(); len(before) != 3 {
		t.Errorf("of %d upstreams the store is said to be cold, want 3", len(before))
	} else {
		eventually(t, "a countdown", func() bool {
			after := lasts()
			return len(after) == 3 && after[0] < before[0] && after[1] < before[1] && after[2] < before[2]
		})
	}
	initialise(t, file)
	begin := time.Now()
	for range 3 {
		s.log.waitFor(t, "store has usage of limits")
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %v until the store was said to know the limits", d)
	}
	for _, u := range s.upstreams() {
		eventually(t, "all is shown to be left of "+u.Name(), func() bool { // a late store must not pass for one with full limits
			l := u.Look(1).Limits[0]
			return l.Level.Left == l.Level.Full
		})
	}
	for path, most := range map[string]int{"/day/": 25, "/rolling/": 25} {
		for n := range most {
			eventually(t, "the store answers in time", func() bool {
				resp, err := http.Get("http://" + s.address() + path)
				r := hear(t, resp, err)
				if r.status != http.StatusOK && r.details.RetryAfterMS > 30_000 {
					t.Fatalf("%s: call %d of %d is answered %d, %s", path, n+1, most, r.status, r.message)
				}
				return r.status == http.StatusOK
			})
		}
		resp, err := http.Get("http://" + s.address() + path)
		if r := hear(t, resp, err); r.status != http.StatusTooManyRequests || r.details.Lack != "" {
			t.Errorf("%s: one more is answered %d, %s", path, r.status, r.message)
		}
	}
}

// The start does not wait for the store.
func TestTheStartDoesNotWaitForTheStore(t *testing.T) {
	begin := time.Now()
	s := start(t, "http://127.0.0.1:1", "store: {redis: \"redis://127.0.0.1:1\"}")
	s.log.waitFor(t, "serving")
	if d := time.Since(begin); d > opening {
		t.Errorf("it took %v", d)
	}
	s.log.waitFor(t, "store not reached")
}
