package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// thawing is the clock of a machine that was frozen together with its monotonic clock.
type thawing struct {
	clock.Clock
	frozen atomic.Int64 // the duration
}

func (c *thawing) Wall(at time.Duration) time.Time {
	return c.Clock.Wall(at).Add(time.Duration(c.frozen.Load()))
}

// freezing is a store that freezes the process before its first response.
type freezing struct {
	Store
	clock *thawing
	asked int
}

func (s *freezing) Take(ctx context.Context, a *Ask) error {
	err := s.Store.Take(ctx, a)
	if len(a.Claims) == 0 {
		return err
	}
	if s.asked++; s.asked == 1 {
		s.clock.frozen.Add(int64(time.Minute))
	}
	return err
}

// Units that were leased before a process was frozen are not spent after it.
func TestALeaseIsDeadWhenEitherClockSaysSo(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 1000, Per: time.Second}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: time.Minute}},
		{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &thawing{Clock: clock.System}
			_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Clock: c, Freezes: true})
			p := leaseOf(regs[0].Get(0, ""))
			for range 300 { // until the process leases units
				if _, _, err := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: 1}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
				if p.held(clock.System.Now()) > 0 {
					break
				}
			}
			now := clock.System.Now()
			if p.held(now) == 0 {
				t.Fatalf("%v: nothing is leased", l)
			}
			c.frozen.Store(int64(10 * time.Minute))
			if _, _, ok := p.Take(now, 1); ok || p.held(now) > 0 {
				t.Errorf("%v: a lease of ten minutes ago is spent", l)
			}
		})
	}
}

// Neither are units that a store granted before.
func TestAnAnswerIsLateWhenEitherClockSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &thawing{Clock: clock.System}
		s := &freezing{Store: NewMemory(nil), clock: c}
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1000, Per: time.Second}}
		_, regs := fleetOf(t, 1, s, l, Options{Clock: c, Freezes: true, Lease: -1})
		ok, v, err := goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		if err != nil || !ok || s.asked != 2 {
			t.Errorf("the store was asked %d times, want once more: %v, %v", s.asked, v, err)
		}
	})
}
