package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A tally is the instants at which units were used, by one clock.
type tally struct {
	mu sync.Mutex
	at []time.Duration
}

func (r *tally) add(at time.Duration, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range n {
		r.at = append(r.at, at)
	}
}

// over returns by how much a window exceeds the limit.
func (r *tally) over(l limit.Limit) (worst int64, where string) {
	slices.Sort(r.at)
	for i, from := range r.at {
		for j := i; j < len(r.at); j++ {
			n, t := int64(j-i+1), r.at[j]-from
			var most int64
			switch l.Shape {
			case limit.Rolling:
				if t >= l.Per {
					j = len(r.at)
					continue
				}
				most = l.Amount
			default:
				most = l.Full() + int64(float64(l.Amount)*t.Seconds()/l.Per.Seconds()+1e-9)
			}
			if n-most > worst {
				worst, where = n-most, fmt.Sprintf("%d in %v from %v, want at most %d", n, t, from, most)
			}
		}
	}
	return worst, where
}

// fleetOf returns several processes that share a limit through one store.
func fleetOf(t *testing.T, n int, s Store, l limit.Limit, o Options) (fleets []*Fleet, regs []*limit.Registry) {
	t.Helper()
	for range n {
		f := New(s, o)
		f.Start()
		r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		fleets, regs = append(fleets, f), append(regs, r)
	}
	t.Cleanup(func() {
		for _, f := range fleets {
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return fleets, regs
}

// goOne makes one call as package weir does.
func goOne(ctx context.Context, until time.Duration, charges ...limit.Charge) (bool, limit.Verdict, error) {
	var p limit.Charges
	for _, c := range charges {
		p.Add(c)
	}
	now := clock.System.Now()
	v := p.Take(now)
	for p.Asks(v, until-now) {
		var err error
		if v, err = p.Fetch(ctx, now, until, limit.Normal); err != nil || !v.OK {
			return false, v, err
		}
		now = clock.System.Now()
		v = p.Take(now)
	}
	return v.OK, v, nil
}

func TestAFleetHoldsTheLimitAndUsesIt(t *testing.T) {
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling} {
		for _, lease := range []time.Duration{-1, 0} {
			l := limit.Limit{Name: "l", Shape: shape, Rate: bucket.Rate{Amount: 100, Per: time.Second}}
			t.Run(fmt.Sprintf("%v lease %v", shape, lease >= 0), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rec := hammer(t, l, Options{Lease: lease}, 10*time.Second)
					if worst, where := rec.over(l); worst > 0 {
						t.Errorf("%d over: %s", worst, where)
					}
					if len(rec.at) < 980 {
						t.Errorf("%d let go in 10s, want 980", len(rec.at))
					}
				})
			})
		}
	}
}

func hammer(t *testing.T, l limit.Limit, o Options, d time.Duration) *tally {
	rec := &tally{}
	_, regs := fleetOf(t, 8, slow{NewMemory(nil), time.Millisecond}, l, o)
	end := clock.System.Now() + d
	var wg sync.WaitGroup
	for _, r := range regs {
		for range 8 {
			wg.Go(func() {
				for clock.System.Now() < end {
					ok, v, err := goOne(context.Background(), min(end, clock.System.Now()+time.Second), limit.Charge{Registry: r, Key: "", Cost: 1})
					if err != nil {
						t.Error(err)
						return
					}
					if now := clock.System.Now(); ok {
						rec.add(now, 1)
					} else {
						time.Sleep(min(v.Wait, 50*time.Millisecond))
					}
				}
			})
		}
	}
	wg.Wait()
	return rec
}

// A failed store request grants no units, even if earlier ones did.
func TestAFleetHoldsTheLimitWhenCallsToTheStoreFail(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 400, Per: time.Second}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 400, Per: time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stumbling{Store: NewMemory(nil)}
			_, regs := fleetOf(t, 1, s, l, Options{})
			rec := &tally{}
			end := clock.System.Now() + 5*time.Second
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for clock.System.Now() < end {
						ok, _, err := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: 1})
						if err != nil {
							t.Error(err)
						}
						if ok {
							rec.add(clock.System.Now(), 1)
						}
						time.Sleep(5 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			s.calls.Store(-1 << 20) // healthy again
			if worst, where := rec.over(l); worst > 0 {
				t.Errorf("%v: %d over: %s", l, worst, where)
			}
			if len(rec.at) < 1000 {
				t.Errorf("%v: only %d went", l, len(rec.at))
			}
		})
	}
}

// stumbling is a store in which two requests of four fail, never three in a row.
type stumbling struct {
	Store
	calls atomic.Int32
}

func (s *stumbling) Take(ctx context.Context, a *Ask) error {
	if s.calls.Add(1)%4 > 1 {
		return errDown
	}
	return s.Store.Take(ctx, a)
}

// A call that wakes long after its grant does not use the units, since the store may no longer count them.
func TestAFleetHoldsTheLimitWhenItsMachineStalls(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &halting{Clock: clock.System}
			rec := hammer(t, l, Options{Lease: -1, Clock: c, Events: Events{Called: func(StoreCall) { c.looks.Store(1) }}}, 20*time.Second)
			if worst, where := rec.over(l); worst > 0 {
				t.Errorf("%v: %d over: %s", l, worst, where)
			}
			if len(rec.at) < 1400 { // heartbeats are late as well; a process that is counted out meanwhile begins to use its part empty
				t.Errorf("%v: only %d went", l, len(rec.at))
			}
		})
	}
}

// halting is a clock of a machine that stalls for a while at one reading in fifty, but never before the check
// of a response.
type halting struct {
	clock.Clock
	looks, halts atomic.Int32
}

func (h *halting) Now() time.Duration {
	if h.looks.Add(-1) < 0 && h.halts.Add(1)%50 == 0 {
		time.Sleep(700 * time.Millisecond)
	}
	return h.Clock.Now()
}

// slow is a store at a distance.
type slow struct {
	Store
	there time.Duration
}

func (s slow) Take(ctx context.Context, a *Ask) error {
	time.Sleep(s.there / 2)
	err := s.Store.Take(ctx, a)
	time.Sleep(s.there / 2)
	return err
}
