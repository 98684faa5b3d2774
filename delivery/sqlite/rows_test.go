package sqlite_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A stored request that cannot be read becomes a dead letter with that reason, and does not block other deliveries.
func TestARequestThatCannotBeReadHoldsUpNothing(t *testing.T) {
	for name, spoil := range map[string]string{
		"a header of no form": "UPDATE request SET header = '{' WHERE seq = 1",
		"no request":          "DELETE FROM request WHERE seq = 1",
	} {
		for how, take := range map[string]func(s *sqlite.Store) ([]delivery.Delivery, error){
			"due": func(s *sqlite.Store) ([]delivery.Delivery, error) {
				return s.Due(t.Context(), "a", delivery.Mark{}, 10)
			},
			"claim": func(s *sqlite.Store) ([]delivery.Delivery, error) {
				return s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 10, Lease: time.Minute})
			},
		} {
			s := open(t, made(t), sqlite.Options{})
			bad, good := accept(t, s, post("a")), accept(t, s, post("a"))
			if err := s.Do(spoil); err != nil {
				t.Fatal(err)
			}
			if all, err := take(s); err != nil || len(all) != 1 || all[0].ID != good.ID || all[0].Method != "POST" {
				t.Errorf("%s, %s: %v, %v", name, how, all, err)
			}
			if d, err := s.Get(t.Context(), bad.ID); err != nil || d.Status != delivery.Failed || !strings.Contains(d.Detail, "cannot be sent") {
				t.Errorf("%s, %s: %s %q, %v", name, how, d.Status, d.Detail, err)
			}
			sameCounts(t, s)
		}
	}
}

// A sweep reports a row that cannot be changed, and changes the rest.
func TestRowsThatFailAreLeftBehind(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		for range 3 {
			accept(t, s, post("a"))
		}
		if _, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 3, Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if err := s.Do("CREATE TRIGGER no BEFORE UPDATE ON delivery WHEN old.seq = 1 BEGIN SELECT raise(ABORT, 'not this one'); END"); err != nil {
			t.Fatal(err)
		}
		if w, err := s.Sweep(t.Context(), nil); w.Reaped != 2 || w.More || err == nil || !strings.Contains(err.Error(), "delivery 1: ") {
			t.Errorf("swept %+v, %v", w, err)
		}
		if err := s.Do("DROP TRIGGER no"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Abandon(t.Context(), "a"); err != nil || n != 3 {
			t.Fatal(n, err)
		}
		if err := s.Do("CREATE TRIGGER no BEFORE UPDATE ON delivery WHEN old.seq = 1 BEGIN SELECT raise(ABORT, 'not this one'); END"); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Redrive(t.Context(), delivery.Filter{Upstream: "a"}, 10); n != 2 || err == nil || !strings.Contains(err.Error(), "delivery 1: ") {
			t.Errorf("redriven %d, %v", n, err)
		}
		sameCounts(t, s)
	})
}

// The writer itself finds an earlier delivery with the same key, so busy readers do not delay it.
func TestAKnownKeyIsToldWhileReadersAreBusy(t *testing.T) {
	s := open(t, made(t), sqlite.Options{Readers: 1})
	r := post("a")
	r.Key = "k"
	first := accept(t, s, r)
	release := s.Hold(t)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d, fresh, err := s.Accept(ctx, r); err != nil || fresh || d.ID != first.ID || string(d.Body) != "hello" {
		t.Errorf("got %q %q (fresh: %v), %v; want %s", d.ID, d.Body, fresh, err, first.ID)
	}
}

// Deliveries that were accepted while the clock was ahead do not wait for the clock to reach that time again.
func TestAClockThatIsSetBack(t *testing.T) {
	shift := 24 * time.Hour
	o := sqlite.Options{Wall: func() time.Time { return time.Now().Add(shift) }}
	bubble(t, o, func(t *testing.T, s *sqlite.Store) {
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		accept(t, s, post("a"))
		later := post("b")
		later.NotBefore = time.Now().Add(time.Hour)
		accept(t, s, later)
		retried := accept(t, s, post("c"))
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "c", Lease: time.Minute})
		if err != nil || len(all) != 1 || all[0].ID != retried.ID {
			t.Fatal(all, err)
		}
		if _, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Queued, Due: time.Now().Add(shift + time.Minute)}); err != nil {
			t.Fatal(err)
		}
		head, behind := post("d"), post("d")
		head.OrderKey, behind.OrderKey = "k", "k"
		accept(t, s, head)
		accept(t, s, behind)
		shift = 0
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for upstream, want := range map[string]time.Duration{"a": 0, "b": time.Hour, "c": time.Minute, "d": 0} {
			due, ok, err := s.Next(t.Context(), upstream, delivery.Mark{})
			if wait := time.Until(due); err != nil || !ok || wait > want+time.Second || wait < want-time.Second {
				t.Errorf("%s is due in %v, %v; want %v", upstream, wait, err, want)
			}
		}
		first, err := s.Claim(t.Context(), delivery.Ask{Upstream: "d", Lease: time.Minute})
		if err != nil || len(first) != 1 {
			t.Fatal(first, err)
		}
		if _, err := s.End(t.Context(), delivery.End{Claim: first[0].Claim(), To: delivery.Completed}); err != nil {
			t.Fatal(err)
		}
		if all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "d", Lease: time.Minute}); err != nil || len(all) != 1 {
			t.Errorf("behind it: %v, %v", all, err)
		}
	})
}

// After a jump forward, the clock deletes and expires nothing until it has been stable for an hour.
func TestAClockThatJumpsForward(t *testing.T) {
	shift := time.Duration(0)
	o := sqlite.Options{Wall: func() time.Time { return time.Now().Add(shift) }}
	bubble(t, o, func(t *testing.T, s *sqlite.Store) {
		dead := accept(t, s, post("a"))
		if _, err := s.Abandon(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		brief := post("b")
		brief.Expires = time.Now().Add(24 * time.Hour)
		waits := accept(t, s, brief)
		are := func(when string, want delivery.Status, gone bool) {
			t.Helper()
			if _, err := s.Sweep(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if d, err := s.Get(t.Context(), waits.ID); err != nil || d.Status != want {
				t.Errorf("%s what waits is %s, %v", when, d.Status, err)
			}
			if _, err := s.Get(t.Context(), dead.ID); errors.Is(err, delivery.ErrNotFound) != gone {
				t.Errorf("%s the dead letter: %v", when, err)
			}
		}
		shift = 31 * 24 * time.Hour
		are("after a jump", delivery.Queued, false)
		if at, ok, err := s.Next(t.Context(), "b", delivery.Mark{}); err != nil || ok {
			t.Errorf("what has expired is due at %v, %v", at, err)
		}
		time.Sleep(50 * time.Minute)
		are("50 minutes later", delivery.Queued, false)
		shift = 0
		are("when it is back", delivery.Queued, false)
		shift = 31 * 24 * time.Hour
		are("after another jump", delivery.Queued, false)
		time.Sleep(61 * time.Minute)
		are("an hour later", delivery.Failed, true)
	})
}
