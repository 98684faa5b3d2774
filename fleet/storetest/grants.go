package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// three returns the claims of one call to three limits, which have room for 10, 3 and 14 copies.
func (w *world) three() (all [3]fleet.Claim) {
	now := w.now()
	all[0] = bucketOf("bucket", 1, 100*time.Hour, 10).claim(now, 1)
	all[1] = rollingOf("rolling", 7, 100*time.Hour).claim(now, 2)
	all[2] = w.fixedOf("fixed", 100, 100*time.Hour).claim(now, 7)
	all[1].Key = "another key"
	return all
}

func leastOfClaims(w *world) {
	k := w.three()
	a := w.take(5, k[:]...)
	if a.Granted != 3 {
		w.Fatalf("granted %d copies, want 3", a.Granted)
	}
	if len(a.Grants) != 3 {
		w.Fatalf("%d grants, want 3", len(a.Grants))
	}
	for i, want := range []int64{7, 1, 79} {
		if got := a.Grants[i].Left; got != want {
			w.Errorf("%s: %d left, want %d", k[i].Rule.Name, got, want)
		}
	}
	if wait := a.Grants[1].Wait; wait <= 0 {
		w.Errorf("the limit that bears no more copy says wait %v", wait)
	}
	if a.Grants[0].Wait != 0 || a.Grants[2].Wait != 0 {
		w.Errorf("limits that bear another copy say wait %v and %v", a.Grants[0].Wait, a.Grants[2].Wait)
	}
}

func allOrNone(w *world) {
	k := w.three()
	w.must(3, k[:]...)
	for range 5 {
		if a := w.another().take(2, k[2], k[1], k[0]); a.Granted != 0 {
			w.Fatalf("granted %d copies, want none", a.Granted)
		}
	}
	for i, want := range []int64{7, 1, 79} {
		w.wantLeft(k[i], want, k[i].Rule.Name+" after refusals")
	}
}

// manyClaims sends an ask with 32 limits of all shapes, the most shared limits that a call can be charged to.
func manyClaims(w *world) {
	now := w.now()
	var all []fleet.Claim
	for i := range 32 {
		name := fmt.Sprint("limit-", i)
		switch i % 8 {
		case 6:
			all = append(all, rollingOf(name, 10, 100*time.Hour).claim(now, 1))
		case 7:
			all = append(all, w.fixedOf(name, 10, 100*time.Hour).claim(now, 1))
		default:
			all = append(all, bucketOf(name, 1, 100*time.Hour, 10).claim(now, 1))
		}
	}
	last := all[31]
	last.Cost = 4
	w.must(2, last)
	if a := w.take(5, all...); a.Granted != 2 || len(a.Grants) != 32 {
		w.Fatalf("granted %d copies of %d limits, want 2 of 32", a.Granted, len(a.Grants))
	}
	if a := w.another().take(1, all...); a.Granted != 0 {
		w.Fatalf("granted %d copies, want none", a.Granted)
	}
	for _, i := range []int{0, 6, 15, 30} {
		w.wantLeft(all[i], 8, all[i].Rule.Name+" after a refusal")
	}
}

func apart(w *world) {
	now := w.now()
	k := bucketOf("one", 1, time.Hour, 5).claim(now, 1)
	w.must(5, k)
	other := k
	other.Key = "another"
	w.wantLeft(other, 5, "another key")
	other.Key, other.Rule = k.Key, bucketOf("two", 1, time.Hour, 5).rule
	w.wantLeft(other, 5, "another limit")
	elsewhere := newWorld(w.T, w.suite)
	elsewhere.wantLeft(k, 5, "another group")
	w.another().wantLeft(k, 0, "another client")
}

func extraIsAQuarter(w *world) {
	w.each(slowOf(100), func(w *world, s *shape) {
		k := s.claim(w.now(), 1)
		k.Extra = 50
		a := w.must(10, k)
		extra := a.Grants[0].Extra
		if extra <= 0 || extra > 22 {
			w.Errorf("extra %d of 90 that were left, want 1 to 22", extra)
		}
		if got, want := a.Grants[0].Left, 90-extra; got != want {
			w.Errorf("%d left, want %d", got, want)
		}
		k.Extra = 3
		if a = w.must(1, k); a.Grants[0].Extra != 3 {
			w.Errorf("extra %d, want the 3 that were asked for", a.Grants[0].Extra)
		}
		w.wantLeft(k, 90-extra-4, "after both")
	})
}

func extraAfterCopies(w *world) {
	w.each(slowOf(100), func(w *world, s *shape) {
		plenty := bucketOf("plenty", 1, time.Hour, 1000).claim(w.now(), 1)
		k := s.claim(w.now(), 9)
		k.Extra, plenty.Extra = 50, 50
		a := w.take(12, plenty, k)
		if a.Granted != 11 || a.Grants[0].Extra != 0 || a.Grants[1].Extra != 0 {
			w.Errorf("granted %d copies and %d and %d extra, want 11 and none", a.Granted, a.Grants[0].Extra, a.Grants[1].Extra)
		}
		if a = w.take(1, k); a.Granted != 0 || a.Grants[0].Extra != 0 {
			w.Errorf("granted %d copies and %d extra, want none", a.Granted, a.Grants[0].Extra)
		}
		w.wantLeft(k, 1, "after refused extras")
	})
}

func lookTakesNothing(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		k := s.claim(w.now(), 1)
		w.must(4, k)
		for range 3 {
			if a := w.take(0, k); a.Granted != 0 || a.Grants[0].Left != 6 || a.Grants[0].Wait != 0 {
				w.Errorf("granted %d, %d left, wait %v; want 0, 6, 0", a.Granted, a.Grants[0].Left, a.Grants[0].Wait)
			}
		}
	})
}

func costNothing(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		now := w.now()
		free, k := s.claim(now, 0), s.claim(now, 1)
		w.must(3, free)
		w.must(10, k)
		w.must(3, free)
		pause := s.settlement(now, 0, fleet.Mark{})
		pause.Pause = time.Hour
		w.settle(pause)
		if a := w.take(3, free); a.Granted != 0 || a.Grants[0].Paused <= 0 {
			w.Errorf("granted %d copies of a paused limit, paused %v", a.Granted, a.Grants[0].Paused)
		}
	})
}

func costAbove(w *world) {
	w.each(quickOf(10), func(w *world, s *shape) {
		for _, cost := range []int64{11, 1 << 40, math.MaxInt64} {
			a := w.ask(1, s.claim(w.now(), cost))
			if err := w.try(a); err != nil {
				continue // an error is a valid answer, too
			}
			if a.Granted != 0 {
				w.Errorf("cost %d of a limit of 10: granted", cost)
			} else if a.Grants[0].Wait != bucket.Never {
				w.Errorf("cost %d of a limit of 10: wait %v, want bucket.Never", cost, a.Grants[0].Wait)
			}
		}
		w.wantLeft(s.claim(w.now(), 1), 10, "after refusals")
	})
}

// nonsense sends values that make no sense. The store may answer with an error or do nothing. It must not create
// units.
func nonsense(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		now := w.now()
		first := w.must(6, s.claim(now, 1))
		for _, n := range []int64{-1, -5, math.MinInt64} {
			_ = w.try(w.ask(n, s.claim(now, 1)))
			_ = w.try(w.ask(1, s.claim(now, n)))
			_ = w.try(w.ask(n, s.claim(now, n)))
			extra := s.claim(now, 1)
			extra.Extra = n
			_ = w.try(w.ask(0, extra))
			back, owe, pause := s.settlement(now, n, first.Grants[0].Mark), s.settlement(now, 0, fleet.Mark{}), s.settlement(now, 0, fleet.Mark{})
			owe.Owe, pause.Pause = n, time.Duration(n)
			for _, settle := range []fleet.Settlement{back, owe, pause} {
				a := w.ask(0)
				a.Settle = []fleet.Settlement{settle}
				_ = w.try(a)
			}
		}
		if left := w.left(s.claim(now, 1)); left > 4 {
			w.Errorf("%d left, want 4 at most", left)
		}
		k := s.claim(now, 2)
		if a := w.ask(2, k, k); w.try(a) == nil && a.Granted > 1 {
			w.Errorf("one limit and key claimed twice in an ask: granted %d copies of 4 units, 4 were left", a.Granted)
		}
	})
}
