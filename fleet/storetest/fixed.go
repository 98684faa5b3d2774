package storetest

import (
	"errors"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

func windowsRoll(w *world) { w.conclusively(windowRolls) }

func windowRolls(w *world) bool {
	s := w.fixedOf("fixed", 10, 200*time.Millisecond)
	first := w.now()
	a := w.must(10, s.claim(first, 1))
	if !a.Now.Before(s.windows(first).End) {
		return false
	}
	if r := a.Grants[0].Reset; r <= 0 || a.Now.Add(r).Sub(s.windows(first).End).Abs() > time.Millisecond {
		w.Errorf("reset in %v, want the window's end", r)
	}
	w.pass(s.windows(first).End.Sub(w.now()))
	if w.now().After(s.windows(first).End.Add(150 * time.Millisecond)) {
		return false
	}
	// These windows are older. They name the new window as the next one.
	if a = w.take(4, s.claim(first, 1)); a.Granted != 4 || a.Grants[0].Left != 6 {
		w.Fatalf("granted %d of a new window, %d left; want 4 and 6", a.Granted, a.Grants[0].Left)
	}
	a = w.take(0, s.claim(w.now(), 1))
	if s.windows(a.Now).Start.Equal(s.windows(first).End) && a.Grants[0].Left != 6 {
		w.Errorf("%d left when the new window is named as the present one, want 6", a.Grants[0].Left)
	}
	return true
}

func windowsElsewhere(w *world) {
	now := w.now()
	s, other := w.fixedOf("fixed", 10, time.Hour), bucketOf("bucket", 1, 100*time.Hour, 10)
	mark := w.must(4, other.claim(now, 1)).Grants[0].Mark
	for _, off := range []time.Duration{-2 * time.Hour, -1000 * time.Hour, time.Hour, 1000 * time.Hour} {
		k := s.claim(now, 1)
		k.Windows = s.windows(now.Add(off))
		a := w.ask(2, other.claim(now, 1), k)
		a.Settle = []fleet.Settlement{other.settlement(now, 4, mark)}
		before := w.now()
		if err := w.try(a); !errors.Is(err, fleet.ErrWindow) {
			w.Errorf("windows %v off: %v, want ErrWindow", off, err)
		}
		if a.Now.Before(before) || a.Now.After(w.now()) {
			w.Errorf("windows %v off: the store's clock is said to be %v, want %v", off, a.Now, before)
		}
	}
	w.wantLeft(s.claim(now, 1), 10, "after refused windows")
	w.wantLeft(other.claim(now, 1), 6, "after refused windows of another claim")
}

// windowsOverlap changes the time zone of a quota, so that its day begins later.
func windowsOverlap(w *world) {
	now := w.now()
	s := w.fixedOf("fixed", 10, 100*time.Hour)
	w.must(7, s.claim(now, 1))
	moved := *s
	moved.begin = s.begin.Add(time.Hour)
	if !moved.windows(now).Start.After(s.windows(now).Start) && !moved.windows(now).End.After(s.windows(now).Start) {
		w.Fatal("the windows do not overlap")
	}
	if left := w.left(moved.claim(now, 1)); left > 3 {
		w.Errorf("%d left in a window that overlaps with one of which 7 of 10 are gone", left)
	}
	if left := w.left(s.claim(now, 1)); left > 3 {
		w.Errorf("%d left in the window as it was, of which 7 of 10 are gone", left)
	}
}

// settlementAhead checks that a process whose clock is ahead cannot end the present window.
func settlementAhead(w *world) {
	now := w.now()
	s := w.fixedOf("fixed", 10, time.Hour)
	w.must(7, s.claim(now, 1))
	ahead := s.settlement(now.Add(5*time.Hour), 0, fleet.Mark{})
	ahead.Owe = 1
	a := w.ask(0)
	a.Settle = []fleet.Settlement{ahead}
	_ = w.try(a) // the store may refuse it
	if left := w.left(s.claim(now, 1)); left > 3 {
		w.Errorf("%d left of a window of which 7 of 10 are gone", left)
	}
}

func seenCounts(w *world) {
	now := w.now()
	s := w.fixedOf("fixed", 10, time.Hour)
	k := s.claim(now, 1)
	k.Seen = 7
	if a := w.take(2, k); a.Granted != 2 || a.Grants[0].Left != 1 {
		w.Errorf("granted %d, %d left; want 2 and 1 when 7 of 10 are known to have gone", a.Granted, a.Grants[0].Left)
	}
	w.wantLeft(s.claim(now, 1), 1, "after it")
	w.conclusively(seenBefore)
}

// seenBefore checks that units seen in the previous window do not count in the present one.
func seenBefore(w *world) bool {
	quick := w.fixedOf("quick", 10, 200*time.Millisecond)
	old := quick.claim(w.now(), 1)
	if a := w.must(3, old); !a.Now.Before(old.End) {
		return false
	}
	old.Seen = 9
	w.pass(old.End.Sub(w.now()))
	a := w.ask(1, old)
	if err := w.try(a); errors.Is(err, fleet.ErrWindow) {
		return false
	}
	if a.Granted != 1 || a.Grants[0].Left != 9 {
		w.Errorf("granted %d, %d left; what went in the window before does not count", a.Granted, a.Grants[0].Left)
	}
	return true
}

// seenAndBack has one process see that 8 of 10 units are spent before another returns 5. The observation then means
// that 8 − 5 units are spent, unless the store has lost its data.
func seenAndBack(w *world) {
	now := w.now()
	s := w.fixedOf("fixed", 10, time.Hour)
	k := s.claim(now, 1)
	a := w.must(8, k)
	seen := w.look(k)
	w.settle(s.settlement(now, 5, a.Grants[0].Mark))
	k.Seen, k.SeenBack = 10-seen.Left, seen.Back
	w.wantLeft(k, 7, "for who knows what it was before")
	k.Seen, k.SeenBack = 8, 0
	b := w.ask(1, k)
	b.Settle = []fleet.Settlement{s.settlement(now, 1, a.Grants[0].Mark)}
	if w.do(b); b.Granted != 1 || b.Grants[0].Left != 7 || b.Grants[0].Back != 6 {
		w.Errorf("granted %d, %d left, %d came back; want 1, 7 and 6", b.Granted, b.Grants[0].Left, b.Grants[0].Back)
	}
	lost := newWorld(w.T, w.suite)
	k.Seen, k.SeenBack = 8, 6
	lost.wantLeft(k, 2, "of a store that knows of nothing")
	k.Seen, k.SeenBack = 0, 0
	lost.wantLeft(k, 2, "after it was told")
}
