package fleet

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// unitsBy returns the units that each process used from one instant to another.
func (w *outage) unitsBy(from, to time.Duration) map[int]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := make(map[int]int64)
	for _, u := range w.went {
		if u.at >= from && u.at < to {
			by[u.by] += u.n
		}
	}
	return by
}

// TestProcessesWithAndWithoutLeasesUseLimitTogether logs how a process with leases and one without compete for
// one limit. Each could use the full limit.
func TestProcessesWithAndWithoutLeasesUseLimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutage(t, 1, rate(100, 100, sec))
		w.each = func(id int, o *Options) {
			if id == 1 {
				o.Lease = -1
			}
		}
		w.join(200)
		w.join(200)
		w.end(30 * sec)
		by := w.unitsBy(10*sec, 30*sec)
		t.Logf("units with leases %d, without %d", by[0], by[1])
		if over, where := w.over(); over > 0 {
			t.Errorf("over by %d: %s", over, where)
		}
		if by[0]+by[1] < 1900 {
			t.Errorf("%d of 2000 units used", by[0]+by[1])
		}
	})
}

// TestBurstOfOneIsUsed checks that a bucket with a burst of one call grants it as soon as it has accrued. The
// store cannot withhold units for its response time, so two calls may be closer together than their grants. The
// grants are checked.
func TestBurstOfOneIsUsed(t *testing.T) {
	for _, rtt := range []time.Duration{time.Millisecond, 15 * time.Millisecond} {
		for _, processes := range []int{1, 4} {
			for _, lease := range []time.Duration{0, -1} {
				synctest.Test(t, func(t *testing.T) {
					w := newOutage(t, 1, limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 1}})
					w.rtt, w.o.Lease, w.granted = rtt, lease, new([]unit)
					for range processes {
						w.join(20)
					}
					w.end(40 * sec)
					used := w.used(10*sec, 40*sec)
					late, _ := w.over()
					t.Logf("%d processes at %v: %d of 300 used; over by %d as used", processes, rtt, used, late)
					if used < 270 {
						t.Errorf("%d processes at %v: %d of 300 used, want 270", processes, rtt, used)
					}
					if late > 1 {
						t.Errorf("%d processes at %v: over by %d as used, want 1 at most", processes, rtt, late)
					}
					w.mu.Lock()
					granted := slices.Clone(*w.granted)
					w.mu.Unlock()
					for i := range granted[1:] { // a store counts microseconds
						if d := granted[i+1].at - granted[i].at; d < 100*time.Millisecond-2*time.Microsecond || granted[i].n > 1 {
							t.Errorf("%d processes at %v: granted within %v", processes, rtt, d)
						}
					}
				})
			}
		}
	}
}

// TestProcessWithoutLeasesIsServedFromStartByStoreAtDistance has a response time of 15 ms, which is longer than
// the initial guard of 10 ms. A process with `lease: off` gets units in its first second.
func TestProcessWithoutLeasesIsServedFromStartByStoreAtDistance(t *testing.T) {
	for _, rtt := range []time.Duration{15 * time.Millisecond, 60 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := newOutage(t, 1, rate(100, 100, sec))
			w.rtt, w.o.Lease = rtt, -1
			w.join(100)
			w.end(6 * sec)
			first, five := w.used(0, sec), w.used(0, 5*sec)
			t.Logf("at %v: %d units in 1 s, %d in 5 s", rtt, first, five)
			if first < 50 || five < 400 {
				t.Errorf("at %v: %d units in the first second and %d in five, want 50 and 400", rtt, first, five)
			}
			if over, where := w.over(); over > 0 {
				t.Errorf("over by %d: %s", over, where)
			}
		})
	}
}
