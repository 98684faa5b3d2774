package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

func post(upstream string) *delivery.Request {
	return &delivery.Request{Upstream: upstream, Method: "POST", Path: "/in", Body: []byte("hello")}
}

func accept(t testing.TB, s *sqlite.Store, r *delivery.Request) delivery.Delivery {
	t.Helper()
	d, _, err := s.Accept(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func path(t testing.TB) string { return filepath.Join(t.TempDir(), "a dir#?", "deliveries.db") }

func made(t testing.TB) string {
	t.Helper()
	p := path(t)
	if err := os.Mkdir(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// The settings of the connection make commits durable, so an acknowledged accept is on disk.
func TestCommitsAreDurable(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000"} {
		if got := s.Pragma(t, pragma); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOneProcessAFile(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	_, err := sqlite.Open(t.Context(), p, sqlite.Options{})
	if err == nil || !strings.Contains(err.Error(), "another weir") || !strings.Contains(err.Error(), p) {
		t.Fatalf("a second one: %v", err)
	}
	d := accept(t, s, post("a")) // the first store continues to work
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, p, sqlite.Options{}).Get(t.Context(), d.ID); err != nil {
		t.Error(err)
	}
}

func TestFilesOfOthers(t *testing.T) {
	for name, tt := range map[string]struct{ setup, want string }{
		"of something else": {"CREATE TABLE x(y)", "not a file of deliveries"},
		"of a newer weir":   {"PRAGMA application_id = 2003134834; PRAGMA user_version = 99", "version 99"},
	} {
		p := made(t)
		db, err := sql.Open("sqlite", "file:"+strings.NewReplacer(" ", "%20", "#", "%23", "?", "%3f").Replace(p))
		if err == nil {
			_, err = db.Exec(tt.setup)
		}
		if err = errors.Join(err, db.Close(), os.Chmod(p, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := made(t)
	if err := os.WriteFile(p, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), p, sqlite.Options{}); err == nil {
		t.Error("a torn file was opened")
	}
	if err := os.Chmod(p, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), p, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
}

// The claims of a former process end when the file is opened, even if their leases have not expired. Their attempts are
// kept in the history.
func TestClaimsOfAFormerProcessAreVoid(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	d := accept(t, s, post("a"))
	for n := 1; n <= delivery.MaxStalls; n++ {
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Hour})
		if err != nil || len(all) != 1 {
			t.Fatalf("start %d: %v, %v", n, all, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, p, sqlite.Options{})
		if w, err := s.Sweep(t.Context(), nil); err != nil || w.Left["a"] != 1 || w.Dead["a"][delivery.Poison] != n/delivery.MaxStalls {
			t.Errorf("start %d: a sweep tells of %+v, %v; want one that was left", n, w, err)
		}
		if w, err := s.Sweep(t.Context(), nil); err != nil || len(w.Left) > 0 {
			t.Errorf("start %d: told twice: %+v, %v", n, w, err)
		}
	}
	if got, err := s.Get(t.Context(), d.ID); err != nil || got.Status != delivery.Failed || got.Reason != delivery.Poison || got.Starts != delivery.MaxStalls {
		t.Errorf("after %d starts: %+v, %v", delivery.MaxStalls, got, err)
	}
}

// Setting the wall clock changes which deliveries are due, but no lease.
func TestLeasesDoNotGoByTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shift := time.Duration(0)
		s := open(t, filepath.Join(t.TempDir(), "d.db"), sqlite.Options{Wall: func() time.Time { return time.Now().Add(shift) }})
		accept(t, s, post("a"))
		later := post("b")
		later.NotBefore = time.Now().Add(30 * time.Minute)
		accept(t, s, later)
		if all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute}); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		shift = time.Hour
		if w, err := s.Sweep(t.Context(), nil); err != nil || w.Reaped > 0 {
			t.Errorf("an hour forward: %+v, %v", w, err)
		}
		if due, err := s.Due(t.Context(), "b", delivery.Mark{}, 1); err != nil || len(due) != 1 {
			t.Errorf("due: %v, %v", due, err)
		}
		shift = -time.Hour
		time.Sleep(time.Minute)
		if w, err := s.Sweep(t.Context(), nil); err != nil || w.Reaped != 1 {
			t.Errorf("an hour back, after the lease: %+v, %v", w, err)
		}
	})
}

// A reader that keeps a transaction open keeps the log from being truncated. It grows up to its limit.
func TestTheLogHasABound(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{MaxLog: 1 << 20})
	accept(t, s, post("a"))
	release := s.Hold(t)
	big := post("a")
	big.Body = make([]byte, 64<<10)
	var err error
	for range 100 {
		if _, _, err = s.Accept(t.Context(), big); err != nil {
			break
		}
	}
	if !errors.Is(err, delivery.ErrFull) || !strings.Contains(err.Error(), "a reader keeps") {
		t.Fatalf("with %d bytes of log: %v", s.LogSize(), err)
	}
	if n := s.LogSize(); n > 2<<20 {
		t.Errorf("the log has %d bytes", n)
	}
	if _, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute}); err != nil {
		t.Errorf("claims go on: %v", err)
	}
	release()
	for err != nil { // truncation is tried again shortly; the test's deadline limits this loop
		_, _, err = s.Accept(t.Context(), big)
	}
}

// The statements of the hot paths use their indexes, without statistics.
func TestHotStatementsUseTheirIndexes(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	for index, query := range map[string]string{
		"INDEX due":          "SELECT seq FROM delivery WHERE upstream = ? AND status = 'queued' AND due <= ? AND (expires IS NULL OR expires > ?) ORDER BY due, seq LIMIT ?",
		"INDEX keyed":        "SELECT seq, status FROM delivery WHERE upstream = ? AND tenant = ? AND order_key = ? AND " + sqlite.InLine + " ORDER BY place LIMIT 1",
		"INDEX lease":        "SELECT seq FROM delivery WHERE lease IS NOT NULL AND lease <= ? ORDER BY lease LIMIT ?",
		"INDEX expiry":       "SELECT seq FROM delivery WHERE expires IS NOT NULL AND status IN ('created', 'queued') AND expires <= ? ORDER BY expires LIMIT ?",
		"INDEX ended":        "SELECT d.seq, coalesce(length(r.body), 0) FROM delivery d LEFT JOIN request r ON r.seq = d.seq WHERE d.status = 'completed' AND d.changed <= ? ORDER BY d.changed LIMIT ?",
		"INDEX idem":         "SELECT id, fingerprint FROM delivery WHERE upstream = ? AND tenant = ? AND idem_key = ? AND idem_key IS NOT NULL",
		"INDEX died":         "SELECT min(changed) FROM delivery d WHERE d.upstream = ? AND d.status = 'failed'",
		"INDEX gone":         "SELECT d.seq, coalesce(length(r.body), 0) FROM delivery d LEFT JOIN request r ON r.seq = d.seq WHERE d.status = 'failed' AND d.changed <= ? ORDER BY d.changed LIMIT ?",
		"past_until":         "SELECT upstream, tenant, idem_key FROM past WHERE until <= ? ORDER BY until LIMIT ?",
		"INDEX held":         "SELECT d.seq FROM delivery d WHERE 1 AND d.holder = ? AND d.holder <> '' AND d.seq < ? ORDER BY d.seq DESC LIMIT ?",
		"COVERING INDEX due": "SELECT due, seq FROM delivery WHERE upstream = ? AND status = 'queued' AND due <= ? AND (due, seq) > (?, ?) ORDER BY due, seq LIMIT ?",
		"INDEX waits":        "SELECT d.seq FROM delivery d WHERE 1 AND d.upstream = ? AND d.status IN ('created', 'queued') ORDER BY d.seq LIMIT ?",
		"INDEX dead":         "SELECT d.seq FROM delivery d WHERE 1 AND d.status = 'failed' AND d.reason = ? ORDER BY d.seq LIMIT ?",
	} {
		if plan := s.Plan(t, query); !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s\nis planned as %s, want %s and no sorting", query, plan, index)
		}
	}
}

// A write that fails is undone without the rest of its group.
func TestAFailedJobUndoesItselfAlone(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	accept(t, s, post("a"))
	errs := make(chan error)
	const callers = 40
	for i := range callers {
		go func() {
			r := post("a")
			r.Key = fmt.Sprint(i)
			var err error
			if i%2 == 0 {
				err = s.AcceptAndFail(*r)
			} else {
				_, _, err = s.Accept(t.Context(), r)
			}
			if (err != nil) != (i%2 == 0) {
				err = fmt.Errorf("caller %d: %w", i, err)
			} else {
				err = nil
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != callers/2+1 {
		t.Errorf("counts %v, %v", counts, err)
	}
	sameCounts(t, s)
}

func TestClosedStore(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Accept(t.Context(), post("a")); !errors.Is(err, delivery.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
