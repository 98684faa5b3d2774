package storetest

import (
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

func backByMark(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		now := w.now()
		k := s.claim(now, 1)
		k.Extra = 2
		first := w.must(8, k)
		taken := 8 + first.Grants[0].Extra
		k.Extra = 0
		second := w.another().must(4, k)
		w.settle(s.settlement(now, 3, first.Grants[0].Mark))
		w.wantLeft(k, 20-taken-4+3, "after 3 of the first came back")
		a := w.ask(4, k)
		a.Settle = []fleet.Settlement{s.settlement(now, 4, second.Grants[0].Mark)}
		if w.do(a); a.Granted != 4 {
			w.Errorf("granted %d copies, want 4: settlements come first", a.Granted)
		}
		w.wantLeft(k, 20-taken-4+3, "after 4 came back and were taken again")
	})
}

// backAfterRefusal checks that refusals and repeats after a grant do not affect its mark.
func backAfterRefusal(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		now := w.now()
		k := s.claim(now, 1)
		first := w.must(8, k)
		k.Cost = 13
		if a := w.take(1, k); a.Granted != 0 {
			w.Fatalf("granted 13 of the 12 that are left")
		}
		again := w.ask(1, k)
		w.do(again)
		w.do(again)
		w.settle(s.settlement(now, 3, first.Grants[0].Mark))
		w.wantLeft(k, 15, "after 3 came back")
	})
}

func backWithoutMark(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		now := w.now()
		w.must(6, s.claim(now, 1))
		w.settle(s.settlement(now, 6, fleet.Mark{}))
		w.wantLeft(s.claim(now, 1), 4, "after units without a mark")
	})
}

// backToTally takes units of a limit and of a tally of the same amounts. The tally never refuses, and its units return.
func backToTally(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		now := w.now()
		tally := rollingOf("held", 80, time.Hour)
		tally.rule.Tally = true
		k, held := s.claim(now, 6), tally.claim(now, 6)
		a := w.must(2, k, held)
		if a.Grants[1].Left != 68 {
			w.Errorf("the tally has %d left of 80, want 68", a.Grants[1].Left)
		}
		if a = w.take(2, k, held); a.Granted != 1 || a.Grants[1].Left != 62 {
			w.Errorf("%d copies granted, and the tally has %d left, want 1 and 62", a.Granted, a.Grants[1].Left)
		}
		if b := w.take(1, k, held); b.Granted != 0 || b.Grants[1].Left != 62 {
			w.Errorf("%d copies granted, and the tally has %d left, want 0 and 62", b.Granted, b.Grants[1].Left)
		}
		w.settle(tally.settlement(now, 6, a.Grants[1].Mark), tally.settlement(now, 6, a.Grants[1].Mark), s.settlement(now, 4, a.Grants[0].Mark))
		if b := w.take(1, k, held); b.Granted != 1 || b.Grants[0].Left != 0 || b.Grants[1].Left != 68 {
			w.Errorf("after units came back: %d copies granted, %d left, and the tally has %d left, want 1, 0 and 68", b.Granted, b.Grants[0].Left, b.Grants[1].Left)
		}
	})
}

func backTwice(w *world) {
	w.each(slowOf(10), func(w *world, s *shape) {
		now := w.now()
		k := s.claim(now, 1)
		a := w.must(6, k)
		back := s.settlement(now, 6, a.Grants[0].Mark)
		w.settle(back)
		w.wantLeft(k, 10, "after all came back")
		w.settle(back, back)
		back.Back = 1 << 40
		w.settle(back)
		w.wantLeft(k, 10, "after the same came back again")
		w.must(10, k)
		w.wantLeft(k, 0, "after all was taken")
	})
}

// backTooLate settles 10 units late. Only units that have not refilled yet return, so the limit is as if the units
// had never been taken. Later, units of that grant do not return.
func backTooLate(w *world) {
	w.each(quickOf(10), func(w *world, s *shape) {
		now := w.now()
		a := w.must(10, s.claim(now, 1))
		w.pass(a.Grants[0].Reset / 2)
		b := w.ask(0, s.claim(w.now(), 1))
		b.Settle = []fleet.Settlement{s.settlement(w.now(), 10, a.Grants[0].Mark)}
		w.do(b)
		if left := b.Grants[0].Left; left != 10 && b.Now.Sub(a.Now) < 100*time.Millisecond {
			w.Errorf("%d left after 10 of 10 came back, want 10", left)
		}
		w.pass(400 * time.Millisecond)
		k := s.claim(w.now(), 1)
		now = w.must(8, k).Now
		b = w.ask(0, s.claim(w.now(), 1))
		b.Settle = []fleet.Settlement{s.settlement(w.now(), 10, a.Grants[0].Mark)}
		w.do(b)
		if s.period > 0 && s.windows(now) != s.windows(b.Now) {
			return
		}
		if gone := b.Now.Sub(now); b.Grants[0].Left > 2+refilled(s, gone) {
			w.Errorf("%d left %v after 8 of 10 were taken: units of long ago came back", b.Grants[0].Left, gone)
		}
	})
}

// refilled returns how many units a quick limit of 10 may have regained after gone.
func refilled(s *shape, gone time.Duration) int64 {
	if s.rule.Shape == limit.Bucket {
		return int64(gone/(20*time.Millisecond)) + 1
	}
	return 10 * int64(min(1, gone/(20*time.Millisecond)))
}

// backShifted returns the first grant's units, which moves the second grant's units lower in the bucket. After
// these units drained, they must not return, regardless of later grants.
func backShifted(w *world) {
	s := bucketOf("bucket", 10, time.Second, 10)
	k := func() fleet.Claim { return s.claim(w.now(), 1) }
	first := w.must(5, k())
	second := w.must(5, k())
	w.settle(s.settlement(w.now(), 5, first.Grants[0].Mark))
	w.pass(600 * time.Millisecond)
	third := w.must(5, k())
	a := w.ask(0, k())
	a.Settle = []fleet.Settlement{s.settlement(w.now(), 5, second.Grants[0].Mark)}
	w.do(a)
	if left, most := a.Grants[0].Left, 5+int64(a.Now.Sub(third.Now)/(100*time.Millisecond))+1; left > most {
		w.Errorf("%d left after 5 of 10 were taken, want %d at most", left, most)
	}
}

func backOfOldWindow(w *world) {
	s := w.fixedOf("fixed", 10, 200*time.Millisecond)
	old := w.must(6, s.claim(w.now(), 1))
	w.pass(old.Grants[0].Reset)
	now := w.now()
	w.must(7, s.claim(now, 1))
	w.settle(s.settlement(now, 6, old.Grants[0].Mark))
	a := w.take(0, s.claim(now, 1))
	if s.windows(a.Now) == s.windows(now) && a.Grants[0].Left != 3 {
		w.Errorf("%d left, want 3", a.Grants[0].Left)
	}
}

func owed(w *world) {
	w.each(quickOf(10), func(w *world, s *shape) {
		w.conclusively(func(w *world) bool { return owes(w, s) })
	})
}

func owes(w *world, s *shape) bool {
	now := w.now()
	first := w.must(8, s.claim(now, 1))
	owe := s.settlement(now, 0, fleet.Mark{})
	owe.Owe = 7
	a := w.ask(1, s.claim(now, 1))
	a.Settle = []fleet.Settlement{owe}
	if w.do(a); a.Now.Sub(first.Now) > 10*time.Millisecond || s.period > 0 && s.windows(first.Now) != s.windows(a.Now) {
		return false
	}
	if a.Granted != 0 || a.Grants[0].Left != 0 {
		w.Fatalf("granted %d with %d left after 15 of 10 were used", a.Granted, a.Grants[0].Left)
	}
	wait := a.Grants[0].Wait
	if s.rule.Shape == limit.Bucket && (wait < 90*time.Millisecond || wait > 125*time.Millisecond) {
		w.Errorf("wait %v until 6 of 10 in 200ms have run out, want 120ms", wait)
	}
	early, grant := w.granted(1, func(now time.Time) []fleet.Claim { return []fleet.Claim{s.claim(now, 1)} })
	if due := a.Now.Add(wait); grant.Now.Before(due.Add(-near(wait))) {
		w.Errorf("granted %v before the instant that was named", due.Sub(grant.Now))
	} else if early != nil && !early.Now.Before(due) {
		w.Errorf("refused %v after the instant that was named", early.Now.Sub(due))
	}
	return true
}
