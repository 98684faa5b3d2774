package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"testing"
	"testing/synctest"
	"time"
)

// cutOffAtReload simulates a fleet in which one process is cut off while the limit is changed.
func cutOffAtReload(t *testing.T, at time.Duration, l, next limit.Limit) (over int64, where string) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutage(t, 1, l)
		w.o.Outage = 5 * time.Minute // after it, a process that is cut off alone may exceed the limit
		for range 4 {
			w.join(l.PerSecond() / 2)
		}
		w.at(20*sec, func() { w.procs[0].up.Store(true) })
		w.reload(at, next)
		w.end(70 * sec)
		over, where = w.over()
		if alone := w.usedBy(0, 22*sec, 70*sec); alone == 0 {
			t.Error("the process that was cut off let nothing go")
		}
	})
	return over, where
}

func (w *outage) usedBy(id int, from, to time.Duration) (n int64) {
	for _, u := range w.went {
		if u.by == id && u.at >= from && u.at < to {
			n += u.n
		}
	}
	return n
}

// TestALongerWindowWhileCutOff checks a process that is cut off when a rolling limit gets a longer window. It
// counts its usage and the store's grants in that window.
func TestALongerWindowWhileCutOff(t *testing.T) {
	l := rollingLimit(200, 10*sec)
	next := l
	next.Per = 30 * sec
	for _, at := range []time.Duration{21 * sec, 24 * sec} {
		if n, where := cutOffAtReload(t, at, l, next); n > 0 {
			t.Errorf("changed at %v: over by %d %s", at, n, where)
		}
	}
}

// TestAnotherShapeWhileCutOff checks that a process that is cut off when a limit gets another shape begins with
// no units of it.
func TestAnotherShapeWhileCutOff(t *testing.T) {
	window, rate := rollingLimit(200, 10*sec), rate(20, 200, sec)
	for _, c := range [][2]limit.Limit{{window, rate}, {rate, window}} {
		synctest.Test(t, func(t *testing.T) {
			w := newOutage(t, 1, c[0])
			w.join(40)
			w.at(20*sec, func() { w.procs[0].up.Store(true) })
			reload := 60 * sec
			w.at(reload-sec, func() { w.procs[0].surge(400) })
			w.reload(reload, c[1])
			w.at(reload+sec/2, func() { w.procs[0].surge(400) })
			w.end(reload + 8*sec)
			if n := w.usedBy(0, reload-9*sec, reload+sec); n > 200+10*20/2 {
				t.Errorf("%v to %v: %d within 10 s about the change, of 200 in 10 s", c[0].Shape, c[1].Shape, n)
			}
			t.Logf("%v to %v: %d in the second after the change, %d in 8 s", c[0].Shape, c[1].Shape, w.usedBy(0, reload, reload+sec), w.usedBy(0, reload, reload+8*sec))
		})
	}
}
