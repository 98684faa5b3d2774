package weir_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// standing is the clock of a machine that stalls for a while: no sleeper wakes meanwhile.
type standing struct {
	clock.Clock
	from, to time.Duration
}

func (c standing) Sleep(ctx context.Context, d time.Duration) error {
	err := c.Clock.Sleep(ctx, d)
	if now := c.Now(); now >= c.from && now < c.to {
		_ = c.Clock.Sleep(context.Background(), c.to-now)
		if ctx.Err() != nil {
			return context.Cause(ctx) // if both timers have fired, either may win
		}
	}
	return err
}

// A call whose deadline passes while its machine stalls was not sent: it is refused, and does not count against its
// upstream.
func TestADeadlineThatPassesWhileTheMachineStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := clock.System.Now()
		c := standing{clock.System, start + 900*time.Millisecond, start + 3*time.Second}
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}
		u, err := weir.New("store", weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Minute}, weir.Options{Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		for i := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			p, err := u.Acquire(ctx, weir.Call{})
			if i == 0 {
				if err != nil {
					t.Fatal(err)
				}
				p.Report(outcome.Outcome{Class: outcome.OK})
				continue
			}
			if r := refusal(t, err); r.Reason != weir.RateLimited || r.RetryAfter <= 0 {
				t.Errorf("got %+v", r)
			}
		}
	})
}

// The same applies in a pause that would have ended in time.
func TestADeadlineThatPassesInAPauseWhileTheMachineStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := clock.System.Now()
		u := open(t, weir.Policy{MaxWait: time.Minute}, weir.Options{Clock: standing{clock.System, start + 900*ms, start + 3*sec}})
		p, _ := try(u, weir.Call{})
		p.Report(hinted(sec).O)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		_, err := u.Acquire(ctx, weir.Call{})
		if r := refusal(t, err); r.Reason != weir.RateLimited || r.RetryAfter <= 0 {
			t.Errorf("got %+v", r)
		}
	})
}

// stoodStill lets 60 callers wait for a limit of ten per second while the machine stalls after the first second. It
// returns when they were admitted, and the lateness in each event.
func stoodStill(t *testing.T, l limit.Limit, fair weir.Fair, still time.Duration, shared bool) (at, late []time.Duration) {
	start := clock.System.Now()
	c := standing{clock.System, start + time.Second, start + time.Second + still}
	o := weir.Options{Clock: c}
	if shared {
		f := fleet.New(fleet.NewMemory(nil), fleet.Options{Clock: c, Lease: -1})
		f.Start()
		o.Fleet = f
		defer func() {
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
	}
	var mu sync.Mutex
	heard := func(e weir.Decided) {
		mu.Lock()
		defer mu.Unlock()
		late = append(late, e.Late)
	}
	o.Events.Decided = heard
	u, err := weir.New("store", weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Minute, Fair: fair}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			p, err := u.Acquire(t.Context(), weir.Call{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			at = append(at, p.Allowed()-start)
			mu.Unlock()
			p.Report(outcome.Outcome{Class: outcome.OK})
		})
	}
	wg.Wait()
	return at, late
}

// A queue that wakes late immediately sends the calls that were due within the last 100 ms and the calls that its
// burst holds. The others are sent when they are due.
func TestALineThatWakesLateHoldsTheLimit(t *testing.T) {
	const unit, tolerance = 100 * time.Millisecond, 100 * time.Millisecond
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 1}},
		{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 5}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10, Per: time.Second}},
	} {
		for _, fair := range []weir.Fair{{}, {By: "tenant"}} {
			synctest.Test(t, func(t *testing.T) {
				at, _ := stoodStill(t, l, fair, 3050*time.Millisecond, false)
				if len(at) != 60 {
					t.Errorf("%v: %d went", l, len(at))
				}
				burst := max(l.Burst, 1)
				if l.Shape == limit.Rolling {
					burst = l.Amount
				}
				for i, from := range at { // in order of admission
					for k, to := range at[i:] {
						most := burst + int64((to-from+tolerance)/unit)
						if l.Shape == limit.Rolling {
							most = l.Amount * (1 + int64((to-from+tolerance)/time.Second))
						}
						if n := int64(k + 1); n > most {
							t.Fatalf("%v: %d went from %v to %v, want %d at most", l, n, from, to, most)
						}
					}
				}
			})
		}
	}
}

// The lateness of a caller's wake-up is reported, for a local and a shared limit. A call that wakes in time is not
// late.
func TestLatenessIsHeard(t *testing.T) {
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 1}}
	for _, shared := range []bool{false, true} {
		for _, fair := range []weir.Fair{{}, {By: "tenant"}} {
			for _, still := range []time.Duration{0, 3050 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					_, late := stoodStill(t, l, fair, still, shared)
					worst := slices.Max(late)
					if want := still; !shared && worst != want || worst < want/2 || worst > want {
						t.Errorf("stood still for %v, shared %v, %+v: %v late, want %v", still, shared, fair, worst, want)
					}
					if least := slices.Min(late); least != 0 {
						t.Errorf("stood still for %v, shared %v, %+v: all were late, by %v at least", still, shared, fair, least)
					}
				})
			}
		}
	}
}
