package serve

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A caller that stores its share gets 429, and another caller is served. When the store is full, all callers get 507.
// Direct calls continue.
func TestStoredDeliveriesAreBoundedByCallerAndInTotal(t *testing.T) {
	n := memnet.New()
	defer n.Close()
	up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	file := filepath.Join(t.TempDir(), "deliveries.db")
	defer serveInside(t, n, "tokens: {a: {env: TOKEN_A}, b: {env: TOKEN_B}}\ndeliveries: {file: "+file+", max_stored: 10}\n"+
		"upstreams: {up: {url: \""+up+"\", routes: [{path: /up/, strip: true, deliver: true}]}}\n")()
	client := &http.Client{Transport: n.Transport()}
	send := func(token string, direct bool) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/up/", nil)
		value, _ := insideEnv(token)
		r.Header.Set("X-Weir-Token", value)
		if !direct {
			r.Header.Set("Prefer", "respond-async")
			r.Header.Set("Weir-Not-Before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	for i := range 5 {
		if got, _ := send("TOKEN_A", false); got != http.StatusAccepted {
			t.Fatalf("request %d: %d", i, got)
		}
	}
	if got, wait := send("TOKEN_A", false); got != http.StatusTooManyRequests || wait == "" {
		t.Errorf("a caller with its share gets %d, retry after %q; want 429", got, wait)
	}
	for i := range 5 {
		if got, _ := send("TOKEN_B", false); got != http.StatusAccepted {
			t.Fatalf("request %d of another caller: %d", i, got)
		}
	}
	for _, token := range []string{"TOKEN_A", "TOKEN_B"} {
		if got, _ := send(token, true); got != http.StatusOK {
			t.Errorf("a direct call gets %d", got)
		}
	}
}

func TestFullStoreAnswers507(t *testing.T) {
	m := newMailboxIn(t, "{file: deliveries.db, max_stored: 2}", "true", "", "")
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for range 2 {
		if resp, _, text := m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+later); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode, text)
		}
	}
	resp, _, text := m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+later)
	if resp.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("%d %s, want 507", resp.StatusCode, text)
	}
	resp, _, text = m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Weir-Not-Before") {
		t.Errorf("a year ahead: %d %s, want 400", resp.StatusCode, text)
	}
}

// A deliveries' file that cannot be opened or used does not affect direct calls. It is used once it works.
func TestUnusableDeliveriesFileLeavesDirectCallsServed(t *testing.T) {
	foreign := func(t *testing.T, file, statement string) {
		db, err := sql.Open("sqlite", "file:"+file)
		if err == nil {
			_, err = db.Exec(statement)
		}
		if err = errors.Join(err, db.Close(), os.Chmod(file, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, file string, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(t *testing.T, file string) (repair func()){
		"damaged": func(t *testing.T, file string) func() {
			good, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(good)
			for i := 4096 + 8; i < len(bad); i++ { // destroys all pages except the first
				bad[i] = 0xff
			}
			write(t, file, bad)
			return func() { write(t, file, good) }
		},
		"locked": func(t *testing.T, file string) func() { return lockedFile(t, file) },
		"missing folder": func(t *testing.T, file string) func() {
			dir := filepath.Dir(file)
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.Rename(dir+".away", dir); err != nil {
					t.Fatal(err)
				}
			}
		},
		"folder is a file": func(t *testing.T, file string) func() {
			dir := filepath.Dir(file)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, nil)
			return func() {
				if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o700)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"unwritable lock": func(t *testing.T, file string) func() {
			if err := errors.Join(os.Remove(file+".lock"), os.Mkdir(file+".lock", 0o700)); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Remove(file + ".lock") }
		},
		"no database": func(t *testing.T, file string) func() {
			write(t, file, bytes.Repeat([]byte("no database "), 1000))
			return func() { _ = os.Remove(file) }
		},
		"another program's database": func(t *testing.T, file string) func() {
			_ = os.Remove(file)
			foreign(t, file, "CREATE TABLE x(y)")
			return func() { _ = os.Remove(file) }
		},
		"a newer version": func(t *testing.T, file string) func() {
			foreign(t, file, "PRAGMA user_version = 99")
			return func() { foreign(t, file, "PRAGMA user_version = 7") }
		},
		"readable for everyone": func(t *testing.T, file string) func() {
			_ = os.Chmod(file, 0o644)
			return func() { _ = os.Chmod(file, 0o600) }
		},
		"in use by another weir": func(t *testing.T, file string) func() {
			s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = s.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFileSite(t)
				stop := s.serve()
				s.sends("before", http.StatusAccepted)
				stop()
				repair := spoil(t, s.file)
				stop = s.serve()
				s.sends("spoiled", http.StatusServiceUnavailable)
				repair()
				time.Sleep(3 * recheckEvery)
				s.sends("repaired", http.StatusAccepted)
				stop()
			})
		})
	}
}

// Without the folder of large bodies, small bodies are stored.
func TestUnusableFolderOfLargeBodiesIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFileSite(t)
		put(t, s.file+".bodies", "")
		stop := s.serve()
		if _, text := s.do(http.MethodGet, "http://127.0.0.1:81/readyz", ""); text != "ready\nproblem with large bodies of deliveries\n" {
			t.Errorf("/readyz answers %q", text)
		}
		if got, text := s.post(true); got != http.StatusAccepted {
			t.Errorf("a small body gets %d %s", got, text)
		}
		_ = os.Remove(s.file + ".bodies")
		time.Sleep(3 * recheckEvery)
		s.sends("repaired", http.StatusAccepted)
		stop()
	})
}

// A store that fails while weir runs is reported until it works again.
func TestStoreThatFailsWhileServingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		s.troubles.log = slog.New(slog.NewTextHandler(io.Discard, nil))
		var full atomic.Bool
		d := &deliveries{suspects: make(chan struct{}, 1), check: func(context.Context) error {
			if full.Load() {
				return delivery.ErrFull
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.watchDeliveries(ctx, d, true)
		for _, want := range []int{1, 0, 1, 0} {
			if full.Store(want > 0); want > 0 {
				d.suspect()
			}
			time.Sleep(2 * recheckEvery)
			if all := s.troubles.list(); len(all) != want {
				t.Errorf("%+v, want %d problems", all, want)
			}
		}
	})
}

func TestDeliveriesFileThatIsAFolderIsAMistake(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	put(t, file, "listen: 127.0.0.1:0\ndeliveries: {file: '"+dir+"'}\nupstreams: {box: {url: 'http://box.test'}}\n")
	_, err := Start(file, Options{Env: os.LookupEnv})
	for what, err := range map[string]error{"serve": err, "check": Check(load(t, file))} {
		if err == nil || !strings.Contains(err.Error(), dir+" is not a file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// lockedFile locks a file of deliveries as another program that writes in it.
func lockedFile(t *testing.T, file string) (unlock func()) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A fileSite is a weir with a file of deliveries, in a bubble.
type fileSite struct {
	*testing.T
	n          *memnet.Network
	file, yaml string
}

func newFileSite(t *testing.T) *fileSite {
	n := memnet.New()
	t.Cleanup(func() { n.Close() })
	up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	dir := filepath.Join(t.TempDir(), "deliveries")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "deliveries.db")
	return &fileSite{t, n, file, "admin: 127.0.0.1:81\ndeliveries: {file: " + file + ", max_body: 1MiB}\nupstreams: {up: {url: \"" + up + "\", routes: [{path: /up/, strip: true, deliver: true}]}}\n"}
}

func (s *fileSite) serve() (stop func()) { return serveInside(s.T, s.n, s.yaml) }

func (s *fileSite) do(method, url, prefer string) (int, string) {
	s.Helper()
	r, _ := http.NewRequestWithContext(s.Context(), method, url, nil)
	if prefer != "" {
		r.Header.Set("Prefer", prefer)
	}
	resp, err := (&http.Client{Transport: s.n.Transport()}).Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func (s *fileSite) post(later bool) (int, string) {
	s.Helper()
	prefer := ""
	if later {
		prefer = "respond-async"
	}
	return s.do(http.MethodPost, "http://localhost/up/", prefer)
}

// sends checks that a direct call succeeds, that a request for later delivery gets a status, and that /readyz and the
// metric agree with it.
func (s *fileSite) sends(when string, want int) {
	s.Helper()
	if got, text := s.post(false); got != http.StatusOK {
		s.Errorf("%s: a direct call gets %d %s", when, got, text)
	}
	if got, text := s.post(true); got != want {
		s.Errorf("%s: a request for later delivery gets %d %s, want %d", when, got, text, want)
	}
	ready, problems := "ready\n", "0"
	if want != http.StatusAccepted {
		ready, problems = "ready\nproblem with deliveries: they are unavailable\n", "1"
	}
	if code, text := s.do(http.MethodGet, "http://127.0.0.1:81/readyz", ""); code != http.StatusOK || text != ready {
		s.Errorf("%s: /readyz answers %d %q", when, code, text)
	}
	if _, text := s.do(http.MethodGet, "http://127.0.0.1:81/metrics", ""); strings.Contains(text, `weir_problems{upstream="(deliveries)"} 1`) != (problems == "1") {
		s.Errorf("%s: the metric of problems with deliveries is not %s", when, problems)
	}
}
