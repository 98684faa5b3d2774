package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// bubble runs a test with a store in virtual time.
func bubble(t *testing.T, o sqlite.Options, test func(t *testing.T, s *sqlite.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, open(t, filepath.Join(t.TempDir(), "d.db"), o)) })
}

// limit limits the file to more pages than it has now.
func limit(t *testing.T, s *sqlite.Store, more int) {
	t.Helper()
	var pages int
	if _, err := fmt.Sscan(s.Pragma(t, "page_count"), &pages); err != nil {
		t.Fatal(err)
	}
	s.Pragma(t, fmt.Sprintf("max_page_count = %d", pages+more))
}

func sameCounts(t *testing.T, s *sqlite.Store) {
	t.Helper()
	if kept, rows := s.CountsAndRows(t); kept != rows {
		t.Errorf("counts are kept as %q, and are %q", kept, rows)
	}
}

// SQLite rolls back the transaction of a group because one write has no space. Only that write fails.
func TestAFullDiskInTheMiddleOfAGroup(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		accept(t, s, post("a"))
		limit(t, s, 2)
		big := post("a")
		big.Body = make([]byte, 64<<10)
		var errs [4]error
		var claimed []delivery.Delivery
		s.Together(
			func() {
				claimed, errs[0] = s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute})
			},
			func() { _, _, errs[1] = s.Accept(t.Context(), big) },
			func() { _, _, errs[2] = s.Accept(t.Context(), post("b")) },
			func() { _, _, errs[3] = s.Accept(t.Context(), post("b")) },
		)
		if errs[0] != nil || len(claimed) != 1 || errs[2] != nil || errs[3] != nil {
			t.Errorf("its group: %d claimed, %v", len(claimed), errs)
		}
		if !errors.Is(errs[1], delivery.ErrFull) || errors.Is(errs[1], delivery.ErrUncertain) {
			t.Errorf("what is too large: %v", errs[1])
		}
		if kept, _ := s.CountsAndRows(t); kept != "a/processing=1 b/queued=2 " {
			t.Errorf("the counts are %q", kept)
		}
		sameCounts(t, s)
	})
}

// A connection that cannot end its transaction is closed. Later changes use a new one.
func TestATransactionThatCannotBeUndone(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		if err := s.Spoil("COMMIT", "ROLLBACK"); !errors.Is(err, delivery.ErrUncertain) {
			t.Fatalf("a commit that fails: %v", err)
		}
		d := accept(t, s, post("a"))
		if got, err := s.Get(t.Context(), d.ID); err != nil || got.Status != delivery.Queued {
			t.Errorf("stored after it: %v, %v", got.Status, err)
		}
		if got := s.Pragma(t, "synchronous"); got != "2" {
			t.Errorf("the new connection is synchronous = %s", got)
		}
	})
}

// The result of a job in a transaction that was not stored is discarded.
func TestAKeyIsReusedOnlyOfWhatWasStored(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		one, two := post("a"), post("a")
		one.Key, two.Key, two.Path = "k", "k", "/other"
		var errs [2]error
		if err := s.Spoil("COMMIT"); err == nil {
			t.Fatal("it was committed")
		}
		s.Together(
			func() { _, _, errs[0] = s.Accept(t.Context(), one) },
			func() { _, _, errs[1] = s.Accept(t.Context(), two) },
		)
		for i, err := range errs {
			if err != nil && (errors.Is(err, delivery.ErrKeyReused) || !errors.Is(err, delivery.ErrUncertain)) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if errs[0] == nil {
			t.Fatal("the commit did not fail")
		}
	})
}

// The cached row of a claim that was rolled back is not used for the next delivery, which may get the same seq and
// fence.
func TestAnUndoneClaimIsForgotten(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		var err error
		s.Together(
			func() { _ = s.Spoil("COMMIT", "ROLLBACK") },
			func() {
				_, _, err = s.AcceptBegun(t.Context(), post("a"), delivery.Ask{Upstream: "a", Lease: time.Minute})
			},
		)
		if !errors.Is(err, delivery.ErrUncertain) {
			t.Fatalf("a commit that fails: %v", err)
		}
		accept(t, s, post("b"))
		if err := s.Do("UPDATE request SET header = '{'"); err != nil { // makes the claim fail
			t.Fatal(err)
		}
		if claimed, err := s.Claim(t.Context(), delivery.Ask{Upstream: "b", Lease: time.Minute}); len(claimed) > 0 || err != nil {
			t.Errorf("claimed %v, %v", claimed, err)
		}
		if kept, _ := s.CountsAndRows(t); kept != "b/failed=1 " {
			t.Errorf("the counts are %q", kept)
		}
		sameCounts(t, s)
	})
}

// Wrong counts, for example in an edited file, are corrected at the next start.
func TestCountsAreMadeAnewAtTheStart(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	accept(t, s, post("a"))
	if err := errors.Join(s.Do("UPDATE counts SET n = 7, status = 'processing'"), s.Close()); err != nil {
		t.Fatal(err)
	}
	sameCounts(t, open(t, p, sqlite.Options{}))
}

// If a caller gives up, its change may still run, but does not read or write the caller's memory.
func TestACallerGoesBeforeItsChange(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		leaves := func(call func(ctx context.Context) error, spoil func()) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			s.Together(
				func() { _ = s.Run(func() { cancel(); <-gone }) },
				func() {
					if err := call(ctx); !errors.Is(err, delivery.ErrUncertain) {
						t.Errorf("got %v", err)
					}
					spoil()
					close(gone)
				},
			)
		}
		r := post("a")
		r.ID = delivery.NewID(time.Now())
		leaves(func(ctx context.Context) error { _, _, err := s.Accept(ctx, r); return err }, func() { r.Body[0] = 'X' })
		d, err := s.Get(t.Context(), r.ID)
		if err != nil || string(d.Body) != "hello" {
			t.Fatalf("accepted %q, %v", d.Body, err)
		}
		only := []int64{d.Seq}
		leaves(func(ctx context.Context) error {
			_, err := s.Claim(ctx, delivery.Ask{Upstream: "a", Only: only, Lease: time.Minute})
			return err
		}, func() { only[0] = 99 })
		if d, err = s.Get(t.Context(), r.ID); err != nil || d.Status != delivery.Processing {
			t.Fatalf("claimed: %s, %v", d.Status, err)
		}
		claims := []delivery.Claim{d.Claim()}
		leaves(func(ctx context.Context) error { _, err := s.Renew(ctx, time.Hour, claims...); return err }, func() { claims[0].Seq = 99 })
		a := &delivery.Attempt{Answer: []byte("fine")}
		ends := []delivery.End{{Claim: d.Claim(), To: delivery.Failed, Attempt: a}}
		leaves(func(ctx context.Context) error { _, err := s.End(ctx, ends...); return err },
			func() { a.Answer[0], a.Code, ends[0].Fence = 'X', "changed", 99 })
		if all, err := s.Attempts(t.Context(), r.ID); err != nil || len(all) != 1 || string(all[0].Answer) != "fine" || all[0].Code != "" {
			t.Errorf("recorded %+v, %v", all, err)
		}
		f := delivery.Filter{IDs: []string{d.ID}, Status: delivery.Failed}
		leaves(func(ctx context.Context) error { _, err := s.Redrive(ctx, f, 1); return err }, func() { f.IDs[0] = "" })
		leaves(func(ctx context.Context) error { _, err := s.Sweep(ctx, nil); return err }, func() {})
		leaves(func(ctx context.Context) error { _, err := s.Abandon(ctx, "a"); return err }, func() {})
		f = delivery.Filter{IDs: []string{d.ID}, Status: delivery.Failed}
		leaves(func(ctx context.Context) error { _, err := s.Drop(ctx, f, 1); return err }, func() { f.IDs[0] = "" })
		if _, err := s.Get(t.Context(), d.ID); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("dropped: %v", err)
		}
	})
}

// A process is suspended until after a caller's timeout. If the pending change is on disk shortly afterwards, the
// caller gets its result. If the process was not suspended, or the change takes long, the caller gets ErrUncertain.
func TestACallerIsNotToldOfTheTimeInWhichNothingRan(t *testing.T) {
	for _, c := range []struct {
		later, writes time.Duration
		want          error
	}{
		{later: 200 * time.Millisecond, writes: 100 * time.Millisecond},
		{later: time.Hour, writes: 200 * time.Millisecond},
		{later: 0, writes: 100 * time.Millisecond, want: delivery.ErrUncertain},
		{later: time.Hour, writes: time.Second, want: delivery.ErrUncertain},
	} {
		bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
			ctx := deliverytest.HeardLate(t.Context(), time.Second, c.later)
			s.Together(
				func() { _ = s.Run(func() { time.Sleep(time.Second + c.later + c.writes) }) },
				func() {
					if _, _, err := s.Accept(ctx, post("a")); !errors.Is(err, c.want) {
						t.Errorf("%v late, written %v later: %v, want %v", c.later, c.writes, err, c.want)
					}
				},
			)
		})
	}
}

// If a caller's context ends before its change has begun, the change is not made, and the error is not ErrUncertain.
func TestACallerGoesBeforeItsTurn(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		hold, held, gone := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() { held <- s.Run(func() { <-hold }) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _, err := s.Accept(ctx, post("a"))
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) || errors.Is(err, delivery.ErrUncertain) {
			t.Errorf("got %v", err)
		}
		close(hold)
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		if kept, rows := s.CountsAndRows(t); kept != "" || rows != "" {
			t.Errorf("stored: %q, %q", kept, rows)
		}
	})
}

// A file has only one lock, whichever name is used to open it.
func TestOneProcessAFileByAnyName(t *testing.T) {
	p := made(t)
	early := filepath.Join(t.TempDir(), "early.db")
	dir := filepath.Join(t.TempDir(), "dir")
	for link, to := range map[string]string{early: p, dir: filepath.Dir(p)} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal("no links here:", err)
		}
	}
	open(t, early, sqlite.Options{}) // creates the target of the link
	for _, name := range []string{p, early, filepath.Join(dir, filepath.Base(p))} {
		if _, err := sqlite.Open(t.Context(), name, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "another weir") {
			t.Errorf("a second one by %s: %v", name, err)
		}
	}
}
