package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// renamedIn replaces a limit by one with another name, as a reload does.
func renamedIn(t *testing.T, r *limit.Registry, l limit.Limit) *limit.Registry {
	next, err := limit.NewSharedEmpty(clock.System.Now(), l, sourceOf(r).group)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A process that starts with the new name of a limit does not know the usage under the old name. If a process
// that reloaded its file has asked before, no units are granted. Otherwise the units of one limit are, to all
// new processes together.
func TestANewNameIsNewToWhoeverStartsWithIt(t *testing.T) {
	for _, l := range []limit.Limit{tenAMinute()[0], tenAMinute()[1]} {
		for _, first := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory(nil)
				_, old := fleetOf(t, 1, m, l, Options{})
				time.Sleep(sec)
				used := drainNow(limit.Charge{Registry: old[0], Key: "", Cost: 1})
				next := l
				next.Name = "m"
				reloaded := renamedIn(t, old[0], next)
				var n int
				if first {
					n += drainNow(limit.Charge{Registry: reloaded, Key: "", Cost: 1})
				}
				_, started := fleetOf(t, 3, m, next, Options{})
				for _, r := range started {
					n += drainNow(limit.Charge{Registry: r, Key: "", Cost: 1})
				}
				n += drainNow(limit.Charge{Registry: reloaded, Key: "", Cost: 1})
				for _, r := range started {
					n += drainNow(limit.Charge{Registry: r, Key: "", Cost: 1})
				}
				if most := 10; used < 9 || n > most || first && n > 0 {
					t.Errorf("%v, the reloaded first %v: %d went under the old name and %d under the new one at once", l.Shape, first, used, n)
				}
			})
		}
	}
}

// A process is cut off while a rolling limit gets another name. Its earlier usage is a debt under the old name.
// When the new name begins, all of the limit counts as used, including that debt.
func TestACutOffProcessOwesUnderTheOldName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rollingLimit(100, 10*sec)
		m := NewMemory(nil)
		cut := &faulty{Store: m}
		_, a := fleetOf(t, 1, m, l, Options{})
		_, b := fleetOf(t, 1, cut, l, Options{})
		var rec tally
		call := func(rs ...*limit.Registry) {
			for _, r := range rs {
				if ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Key: "", Cost: 1}); ok {
					rec.add(clock.System.Now(), 1)
				}
			}
		}
		during := func(d time.Duration, rs ...*limit.Registry) {
			for end := clock.System.Now() + d; clock.System.Now() < end; time.Sleep(100 * time.Millisecond) {
				call(rs...)
				call(rs...)
			}
		}
		during(20*sec, a[0], b[0])
		cut.down.Store(true)
		during(20*sec, a[0], b[0])
		l.Name = "m"
		ra, rb := renamedIn(t, a[0], l), renamedIn(t, b[0], l)
		during(5*sec, ra, rb)
		cut.down.Store(false)
		during(40*sec, ra, rb)
		if n, where := rec.over(l); n > 0 {
			t.Errorf("%d over: %s", n, where)
		}
		if len(rec.at) < 500 {
			t.Errorf("%d went in 85s of 10/s", len(rec.at))
		}
	})
}

// A limit gets another name while some processes are cut off and the burst is used up. The parts that are out
// slow the bucket down. Still, no more units may return under the new name than have accrued since.
func TestRenameWhilePartsAreOutKeepsTheLimit(t *testing.T) {
	for _, cut := range []int{1, 2, 3} {
		for _, at := range []time.Duration{8 * sec, 12 * sec, 20 * sec} {
			synctest.Test(t, func(t *testing.T) {
				l := rate(36, 144, sec)
				w := newOutage(t, uint64(cut), l)
				w.o.Outage, w.o.Without.Refuse = time.Minute, true
				for range 4 {
					w.join(l.PerSecond() / 2)
				}
				w.at(5*sec, func() {
					for _, p := range w.procs[:cut] {
						p.up.Store(true)
						p.back.Store(true)
					}
				})
				w.rename(at)
				w.end(40 * sec)
				if n, where := w.over(); n > 0 {
					t.Errorf("%d of 4 processes cut off, new name at %v: over by %d %s", cut, at, n, where)
				}
				if used := w.used(at, 40*sec); used < int64((40*sec-at).Seconds()*36/4) {
					t.Errorf("%d of 4 processes cut off, new name at %v: only %d units used after it", cut, at, used)
				}
			})
		}
	}
}
