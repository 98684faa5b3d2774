package storetest

import (
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// within checks the remaining units of a limit. Rounding may cost a unit, so it takes a range.
func (w *world) within(s *shape, least, most int64, why string) {
	w.Helper()
	if got := w.left(s.claim(w.now(), 1)); got < least || got > most {
		w.Errorf("%s: %d left, want %d to %d", why, got, least, most)
	}
}

func changedRate(w *world) {
	of := func(amount, burst int64) *shape { return bucketOf("bucket", amount, 1000*time.Hour, burst) }
	w.must(6, of(10, 10).claim(w.now(), 1))
	w.within(of(20, 10), 3, 4, "twice the rate")
	w.within(of(7, 10), 3, 4, "a lower rate")
	w.within(of(7, 30), 23, 24, "a higher burst")
	w.within(of(7, 5), 0, 0, "a lower burst")
	w.within(of(10, 10), 2, 4, "the rate that it was")
	w.within(bucketOf("bucket", 10, time.Hour, 10), 2, 4, "another period")
	w.within(bucketOf("bucket", 1e6, 1000*time.Hour, 1e6), 1e6-9, 1e6-6, "a large one")
	w.within(of(10, 10), 0, 4, "a small one again")
}

func changedRolling(w *world) {
	of := func(amount int64, per time.Duration) *shape { return rollingOf("rolling", amount, per) }
	w.must(6, of(10, 100*time.Hour).claim(w.now(), 1))
	w.within(of(20, 100*time.Hour), 14, 14, "a higher amount")
	w.within(of(5, 100*time.Hour), 0, 0, "a lower amount")
	w.within(of(10, 300*time.Hour), 4, 4, "a longer window")
	w.must(1, of(10, 300*time.Hour).claim(w.now(), 1))
	w.within(of(10, 50*time.Hour), 3, 3, "a shorter window")
	w.within(of(10, 100*time.Hour), 3, 3, "what it was")
}

func changedFixed(w *world) {
	s := w.fixedOf("fixed", 10, 100*time.Hour)
	of := func(amount int64) *shape {
		n, r := *s, *s.rule
		r.Amount, n.rule = amount, &r
		return &n
	}
	w.must(6, s.claim(w.now(), 1))
	w.within(of(20), 14, 14, "a higher amount")
	w.within(of(5), 0, 0, "a lower amount")
	w.within(s, 4, 4, "what it was")
}

// backAfterChange checks that units that expired at a high rate do not return after the rate drops again.
func backAfterChange(w *world) {
	slow, fast := bucketOf("bucket", 1, 100*time.Hour, 10), bucketOf("bucket", 10, 50*time.Millisecond, 10)
	mark := w.must(10, slow.claim(w.now(), 1)).Grants[0].Mark
	w.left(fast.claim(w.now(), 1))
	w.pass(100 * time.Millisecond)
	w.wantLeft(fast.claim(w.now(), 1), 10, "at the high rate")
	w.must(8, slow.claim(w.now(), 1))
	w.settle(slow.settlement(w.now(), 10, mark))
	if left := w.left(slow.claim(w.now(), 1)); left > 2 {
		w.Errorf("%d left after 8 of 10 were taken", left)
	}
	quick, half := bucketOf("another", 10, 50*time.Millisecond, 10), bucketOf("another", 5, 50*time.Millisecond, 10)
	early := w.must(10, quick.claim(w.now(), 1)).Grants[0].Mark
	w.pass(50 * time.Millisecond)
	taken := w.must(8, quick.claim(w.now(), 1)).Now
	late := w.ask(0, half.claim(w.now(), 1))
	late.Settle = []fleet.Settlement{half.settlement(w.now(), 10, early)}
	w.do(late)
	if left, most := late.Grants[0].Left, 2+int64(late.Now.Sub(taken)/(5*time.Millisecond))+1; left > most {
		w.Errorf("%d left after 8 of 10 were taken and the rate was halved, want %d at most", left, most)
	}
}
