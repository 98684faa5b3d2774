package fleet

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// stallsAt is a clock of a machine that stalls before the nth reading.
type stallsAt struct {
	clock.Clock
	n, reads atomic.Int32
	by       time.Duration // 0 means 700ms
}

func (c *stallsAt) Now() time.Duration {
	if c.reads.Add(1) == c.n.Load() {
		time.Sleep(cmp.Or(c.by, 700*time.Millisecond))
	}
	return c.Clock.Now()
}

// lastGrant is a store that records when the request for its last grant arrived.
type lastGrant struct {
	Store
	at time.Duration
}

func (s *lastGrant) Take(ctx context.Context, a *Ask) error {
	at := clock.System.Now()
	err := s.Store.Take(ctx, a)
	if err == nil && a.Granted > 0 {
		s.at = at
	}
	return err
}

// The machine stalls at any reading of the clock between the request and the last check. No call uses units
// that have expired by then.
func TestNoStallLetsLateUnitsGo(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	} {
		stalls := true
		for n := int32(1); stalls; n++ {
			synctest.Test(t, func(t *testing.T) {
				c, s := &stallsAt{Clock: clock.System}, &lastGrant{Store: NewMemory(nil)}
				f := New(s, Options{Lease: -1, Clock: c})
				r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
				if err != nil {
					t.Fatal(err)
				}
				begin := clock.System.Now()
				c.reads.Store(0)
				c.n.Store(n)
				ok, _, err := goOne(context.Background(), begin+time.Minute, limit.Charge{Registry: r, Cost: 1})
				if err != nil || !ok {
					t.Fatalf("%v, stall %d: %v, %v", l, n, ok, err)
				}
				now := clock.System.Now()
				if hold := f.Group("up").spec(l).hold; now-s.at >= hold {
					t.Errorf("%v, stall %d: let go %v after the store was asked, want within %v", l, n, now-s.at, hold)
				}
				stalls = c.reads.Load() >= n
			})
		}
	}
}

// While the store is away, the machine stalls at any reading of the clock, for less or for more than units may be used
// late. The calls stay within the limit.
func TestNoStallMakesOwnUnitsExceedTheLimit(t *testing.T) {
	for _, c := range []struct {
		limit limit.Limit
		cost  int64
		stall time.Duration
	}{
		{limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 4, Per: time.Second, Burst: 2}}, 1, 60 * time.Millisecond},
		{limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}, 40, 60 * time.Millisecond},
		{limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 4, Per: time.Second}}, 1, 60 * time.Millisecond},
		{limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1, Per: time.Second}}, 1, 9 * time.Millisecond},
	} {
		l := c.limit
		stalls := true
		for n := int32(1); stalls; n++ {
			synctest.Test(t, func(t *testing.T) {
				stall, s := &stallsAt{Clock: clock.System, by: c.stall}, &faulty{Store: NewMemory(nil)}
				_, regs := fleetOf(t, 1, s, l, Options{Clock: stall, Lease: -1})
				var went tally
				uses := func(d time.Duration) {
					for end := clock.System.Now() + d; clock.System.Now() < end; {
						ok, _, err := goOne(context.Background(), end, limit.Charge{Registry: regs[0], Cost: c.cost})
						if err != nil {
							t.Fatal(err)
						}
						if went.add(clock.System.Now(), map[bool]int64{true: c.cost}[ok]); !ok {
							time.Sleep(10 * time.Millisecond)
						}
					}
				}
				uses(3 * time.Second) // the process gets a part
				s.down.Store(true)
				uses(3 * time.Second)
				before := len(went.at)
				stall.reads.Store(0)
				stall.n.Store(n)
				uses(8 * time.Second)
				stalls = stall.reads.Load() >= n && n < 100
				if alone := len(went.at) - before; alone < 3*int(c.cost) {
					t.Errorf("%v, stall %d: %d calls went without the store", l, n, alone)
				}
				if over, where := went.over(l); over > 0 {
					t.Errorf("%v, stall %d: %s", l, n, where)
				}
				s.down.Store(false)
			})
		}
	}
}
