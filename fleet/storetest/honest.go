package storetest

import (
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// near returns the tolerance for an answer of a real store, whose clock may be coarser than a microsecond.
func near(d time.Duration) time.Duration { return max(3*time.Millisecond, d/8) }

func honestWait(w *world) {
	w.each(quickOf(10), func(w *world, s *shape) {
		w.must(10, s.claim(w.now(), 1))
		refused := w.take(3, s.claim(w.now(), 3))
		if refused.Granted != 0 {
			return // the store is so slow that the limit has refilled
		}
		wait := refused.Grants[0].Wait
		if wait <= 0 || wait > 250*time.Millisecond {
			w.Fatalf("wait %v for a limit that is full again after 200ms", wait)
		}
		if w.advance != nil {
			w.exactly(wait, s)
			return
		}
		early, grant := w.granted(1, func(now time.Time) []fleet.Claim { return []fleet.Claim{s.claim(now, 3)} })
		due := refused.Now.Add(wait)
		if early != nil && !early.Now.Before(due) {
			w.Errorf("refused %v after the instant that was named", early.Now.Sub(due))
		}
		if grant.Now.Before(due.Add(-near(wait))) {
			w.Errorf("granted %v before the instant that was named", due.Sub(grant.Now))
		}
	})
}

// exactly checks that the store refuses a microsecond before the instant that it named, and grants at that instant.
func (w *world) exactly(wait time.Duration, s *shape) {
	w.Helper()
	w.pass(wait - time.Microsecond)
	if a := w.take(1, s.claim(w.now(), 3)); a.Granted != 0 || a.Grants[0].Wait != time.Microsecond {
		w.Errorf("a microsecond before: granted %d, wait %v", a.Granted, a.Grants[0].Wait)
	}
	w.pass(time.Microsecond)
	if a := w.take(1, s.claim(w.now(), 3)); a.Granted != 1 {
		w.Errorf("at the instant that was named: refused, wait %v", a.Grants[0].Wait)
	}
}

// completeBurst checks a limit whose processes hold grants for 40ms, so that the store grants 7 of 10 units at once.
func completeBurst(w *world) {
	const hold, empty = 40 * time.Millisecond, 200 * time.Millisecond
	s := heldBucket(bucket.Rate{Amount: 50, Per: time.Second, Burst: 10}, hold)
	all := func(now time.Time) []fleet.Claim { return []fleet.Claim{s.claim(now, 10)} }
	w.must(1, all(w.now())...)
	refused := w.take(1, all(w.now())...)
	wait := refused.Grants[0].Wait
	if refused.Granted != 0 || wait < empty || wait > 2*(hold+empty) {
		w.Fatalf("after all units: %d granted, wait %v; want none for %v", refused.Granted, wait, hold+empty)
	}
	if left := refused.Grants[0].Left; left != 0 {
		w.Errorf("%d units left after a call that cost all", left)
	}
	due := refused.Now.Add(wait)
	if w.advance != nil {
		w.pass(wait - time.Microsecond)
		if a := w.take(1, all(w.now())...); a.Granted != 0 {
			w.Errorf("granted a microsecond before the instant that was named")
		}
		w.pass(time.Microsecond)
		if a := w.take(1, all(w.now())...); a.Granted != 1 {
			w.Errorf("at the instant that was named: refused, wait %v", a.Grants[0].Wait)
		}
	} else if _, a := w.granted(1, all); a.Now.Before(due.Add(-near(wait))) {
		w.Errorf("granted %v before the instant that was named", due.Sub(a.Now))
	}
	w.pass(hold + empty/2)
	one := w.must(1, s.claim(w.now(), 1))
	if a := w.take(1, all(w.now())...); a.Granted != 0 && a.Now.Sub(one.Now) < 20*time.Millisecond+hold {
		w.Errorf("all units granted %v after one", a.Now.Sub(one.Now))
	}
	w.pass(2 * (hold + empty))
	one = w.another().must(1, s.claim(w.now(), 1))
	w.pass(25 * time.Millisecond) // the limit is full again
	if a := w.take(1, all(w.now())...); a.Granted != 0 && a.Now.Sub(one.Now) < 20*time.Millisecond+hold {
		w.Errorf("all units granted %v after another client got one", a.Now.Sub(one.Now))
	}
	if a := w.take(1, s.claim(w.now(), 11)); a.Granted != 0 || a.Grants[0].Wait != bucket.Never {
		w.Errorf("more than all units: %d granted, wait %v", a.Granted, a.Grants[0].Wait)
	}
}

func honestReset(w *world) {
	w.each(quickOf(10), func(w *world, s *shape) {
		a := w.must(7, s.claim(w.now(), 1))
		reset := a.Grants[0].Reset
		if reset <= 0 || reset > 250*time.Millisecond {
			w.Fatalf("everything there again after %v, want about 200ms", reset)
		}
		if w.advance != nil {
			w.pass(reset - time.Microsecond)
			if left := w.left(s.claim(w.now(), 1)); left >= 10 {
				w.Errorf("%d left a microsecond before everything should be", left)
			}
			w.pass(time.Microsecond)
		} else {
			w.pass(reset - w.now().Sub(a.Now))
		}
		g := w.look(s.claim(w.now(), 1))
		if g.Left != 10 {
			w.Errorf("%d left when everything should be there", g.Left)
		}
		if s.rule.Shape != limit.Calendar && g.Reset != 0 {
			w.Errorf("reset %v when everything is there", g.Reset)
		}
	})
}

func pauseStopsAll(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		w.conclusively(func(w *world) bool { return pauseStops(w, s) })
	})
}

func pauseStops(w *world, s *shape) bool {
	now := w.now()
	pause := s.settlement(now, 0, fleet.Mark{})
	pause.Pause = 200 * time.Millisecond
	a := w.ask(1, s.claim(now, 1))
	a.Settle = []fleet.Settlement{pause}
	if w.do(a); a.Granted != 0 {
		w.Error("granted by the ask that paused the limit")
	}
	k, until, other := s.claim(now, 1), a.Now.Add(pause.Pause), w.another()
	k.Extra = 2
	refused := other.take(0, k)
	if !refused.Now.Before(until) {
		return false
	}
	if g := refused.Grants[0]; g.Extra != 0 || g.Paused <= 0 || g.Wait < g.Paused {
		w.Errorf("in a pause: extra %d, paused %v, wait %v", g.Extra, g.Paused, g.Wait)
	}
	if refused.Grants[0].Left != 10 {
		w.Errorf("%d left, want 10: a pause takes nothing", refused.Grants[0].Left)
	}
	k.Key, k.Extra = "another key", 0
	other.must(1, k)
	early, grant := other.granted(1, func(now time.Time) []fleet.Claim { return []fleet.Claim{s.claim(now, 1)} })
	if grant.Now.Before(until.Add(-time.Millisecond)) {
		w.Errorf("granted %v before the pause ended", until.Sub(grant.Now))
	}
	if early != nil && early.Now.After(until.Add(time.Millisecond)) {
		w.Errorf("refused %v after the pause ended", early.Now.Sub(until))
	}
	return true
}

func pauseOnlyGrows(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		for _, d := range []time.Duration{10 * time.Second, 20 * time.Second, 5 * time.Second, time.Microsecond, 0} {
			pause := s.settlement(w.now(), 0, fleet.Mark{})
			pause.Pause = d
			w.another().settle(pause)
		}
		g := w.look(s.claim(w.now(), 1))
		if g.Paused < 10*time.Second || g.Paused > 20*time.Second {
			w.Errorf("paused for %v, want nearly 20s", g.Paused)
		}
	})
}
