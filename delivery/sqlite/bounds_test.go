package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// While a reader blocks truncation of the log, claims and the commands of operators also fail beyond a limit, but
// attempts under way can end.
func TestTheLogHasABoundForClaims(t *testing.T) {
	s := open(t, made(t), sqlite.Options{MaxLog: 1 << 20})
	first := accept(t, s, post("a"))
	ended, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute})
	if err != nil || len(ended) != 1 {
		t.Fatal(ended, err)
	}
	accept(t, s, post("b"))
	release := s.Hold(t)
	for range 100_000 {
		var all []delivery.Delivery
		if all, err = s.Claim(t.Context(), delivery.Ask{Upstream: "b", Lease: time.Minute}); err != nil {
			break
		}
		if _, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Queued, Attempt: &delivery.Attempt{Answer: make([]byte, delivery.MaxAnswer)}}); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, delivery.ErrFull) {
		t.Fatalf("with %d bytes of log claims: %v", s.LogSize(), err)
	}
	if n := s.LogSize(); n < 1<<20 || n > 2<<20 {
		t.Errorf("the log has %d bytes", n)
	}
	for what, err := range map[string]error{
		"redrive": second(s.Redrive(t.Context(), delivery.Filter{Upstream: "a"}, 1)),
		"drop":    second(s.Drop(t.Context(), delivery.Filter{Upstream: "a"}, 1)),
		"put off": s.Defer(t.Context(), time.Now(), first.Seq),
	} {
		if !errors.Is(err, delivery.ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if lost, err := s.End(t.Context(), delivery.End{Claim: ended[0].Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
		t.Errorf("an end: %v, %v", lost, err)
	}
	release()
	for err = delivery.ErrFull; err != nil; {
		_, err = s.Claim(t.Context(), delivery.Ask{Upstream: "b", Lease: time.Minute})
	}
}

func second(_ int, err error) error { return err }

// Pruning deletes at most a fixed size of bodies per transaction.
func TestPruningIsBounded(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		const n = 50
		for range n {
			r := post("a")
			r.Body = make([]byte, delivery.MaxBody)
			accept(t, s, r)
		}
		if got, err := s.Abandon(t.Context(), "a"); err != nil || got != n {
			t.Fatal(got, err)
		}
		time.Sleep(31 * 24 * time.Hour)
		left := n
		for range 2 * n {
			w, err := s.Sweep(t.Context(), nil)
			if err != nil || w.Pruned*delivery.MaxBody > 4<<20 {
				t.Fatalf("%d pruned at once, %v", w.Pruned, err)
			}
			if left -= w.Pruned; left == 0 {
				return
			}
			if !w.More {
				t.Fatalf("%d are left, and it says no more", left)
			}
		}
		t.Errorf("%d are left", left)
	})
}

// A file with two hard links would have two locks and two logs.
func TestAFileWithTwoNames(t *testing.T) {
	p := made(t)
	if err := open(t, p, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(p), "other.db")
	if err := os.Link(p, other); err != nil {
		t.Fatal("no links here:", err)
	}
	for _, name := range []string{p, other} {
		if _, err := sqlite.Open(t.Context(), name, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "2 hard links") {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	open(t, p, sqlite.Options{})
}

// A file with an older schema is upgraded and keeps its contents.
func TestAnOlderFileIsUpgraded(t *testing.T) {
	p := filepath.Join(t.TempDir(), "old.db")
	sqlite.MakeOld(t, p)
	if err := os.Chmod(p, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := sqlite.Look(t.Context(), p); err != nil || f != (sqlite.Found{Version: 1}) {
		t.Errorf("it looks %+v, %v", f, err)
	}
	if _, err := sqlite.OpenToRead(t.Context(), p); err == nil || !strings.Contains(err.Error(), "older weir") {
		t.Errorf("only looked at: %v", err)
	}
	s := open(t, p, sqlite.Options{})
	r := post("a")
	r.OrderKey, r.Stop = "k", true
	behind := accept(t, s, r)
	if behind.Status != delivery.Created {
		t.Errorf("what came after it is %s", behind.Status)
	}
	if all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute}); err != nil || len(all) != 1 || all[0].ID != "old" || all[0].Expires.IsZero() || !all[0].TokenEnds.Equal(all[0].Expires) {
		t.Errorf("%v, %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, p, sqlite.Options{})
}
