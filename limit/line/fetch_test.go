package line

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A depot is a remote store. A fetch takes a while and brings several units.
type depot struct {
	*Line
	trip   time.Duration
	each   int // units per fetch
	pause  time.Duration
	trips  int
	under  atomic.Int64 // fetches in progress
	inHand int          // guarded by the queue
	served []string
}

func newDepot(trip time.Duration, each int) *depot {
	return &depot{Line: ByPriority(clock.System, 1000), trip: trip, each: each}
}

type client struct {
	*depot
	name  string
	takes bool
}

func (c *client) Ask(time.Duration, time.Duration) Step {
	if !c.takes || c.inHand == 0 {
		return Step{Kind: Store, Fetch: c.fetch}
	}
	c.inHand--
	c.served = append(c.served, c.name)
	return Step{Kind: Go}
}

func (d *depot) fetch(_ context.Context, now time.Duration, _ *Call) time.Duration {
	if d.under.Add(1) > 1 {
		panic("two fetch at once")
	}
	defer d.under.Add(-1)
	time.Sleep(d.trip)
	d.trips++
	left := -1
	d.Each(func(a Asker) Kind {
		if left < 0 {
			left = d.each
		}
		if left == 0 {
			return Wait
		}
		left--
		d.served = append(d.served, a.(*client).name)
		return Go
	})
	return now + d.trip + d.pause
}

func (d *depot) joins(ctx context.Context, name string, priority int, patience time.Duration) error {
	now := clock.System.Now()
	_, err := d.Join(ctx, now, &Call{Asker: &client{depot: d, name: name}, Priority: priority, Until: now + patience})
	return err
}

// The driver fetches for all waiting calls. Each priority goes before the next, including late arrivals, and is first
// come, first served.
func TestTheDriverFetchesForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(10*ms, 2)
		var wg sync.WaitGroup
		for i, name := range []string{"b", "d", "a", "c", "e", "f"} {
			priority := []int{1, 2, 0, 1, 2, 2}[i]
			wg.Go(func() {
				if err := d.joins(t.Context(), name, priority, time.Second); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			time.Sleep(ms)
		}
		wg.Wait()
		if want := []string{"a", "b", "c", "d", "e", "f"}; !slices.Equal(d.served, want) || d.trips != 3 {
			t.Errorf("went in the order %v in %d trips, want %v in 3", d.served, d.trips, want)
		}
		if d.Waiting() != 0 || d.driver != nil || d.waker.Load() != nil {
			t.Errorf("%d wait, driver %v", d.Waiting(), d.driver)
		}
	})
}

// A call whose time is up before anything was fetched leaves, whether it is the driver or not. Then another call
// drives.
func TestWhoWaitsForAFetchLeavesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(0, 0)
		d.pause = time.Hour
		begin := clock.System.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			patience := time.Duration(10-i) * 10 * ms // the first call is the last to leave, except for one
			if i == 1 {
				patience = time.Second
			}
			wg.Go(func() {
				err := d.joins(t.Context(), "", 0, patience)
				if left := clock.System.Now() - begin; !errors.Is(err, ErrLate) || left != patience {
					t.Errorf("left after %v, want %v: %v", left, patience, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// A driver whose context ends during a fetch leaves when the fetch returns, although more could be fetched. The next
// call drives.
func TestADriverThatLeavesIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(10*ms, 0)
		begin, left := clock.System.Now(), errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := d.joins(ctx, "", 0, time.Minute); !errors.Is(err, left) || clock.System.Now()-begin != 10*ms {
				t.Errorf("left after %v: %v, want after 10ms", clock.System.Now()-begin, err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := d.joins(t.Context(), "", 0, time.Minute); err != nil || clock.System.Now()-begin != 20*ms {
				t.Errorf("the next went after %v: %v, want after 20ms", clock.System.Now()-begin, err)
			}
		})
		time.Sleep(5 * ms)
		cancel(left)
		time.Sleep(10 * ms)
		d.Each(func(Asker) Kind {
			d.each = 1
			return Wait
		})
		wg.Wait()
	})
}

// Nudge makes the driver ask again, also from within the queue's lock. It is not lost if it comes during a fetch.
func TestANudgeIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(10*ms, 0)
		d.pause = time.Hour
		a := &client{depot: d, name: "a"}
		begin := clock.System.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Join(t.Context(), begin, &Call{Asker: a, Until: begin + time.Minute}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(5 * ms) // it is fetching
		d.Each(func(Asker) Kind {
			a.takes, d.inHand = true, 1
			d.Nudge()
			return Wait
		})
		wg.Wait()
		if took := clock.System.Now() - begin; took != 10*ms {
			t.Errorf("went after %v, want 10ms", took)
		}
	})
}

func TestALineByPriorityIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(0, 0)
		d.Line, d.pause = ByPriority(clock.System, 2), time.Hour
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = d.joins(t.Context(), "", 0, time.Second) })
			synctest.Wait()
		}
		if err := d.joins(t.Context(), "", 0, time.Second); !errors.Is(err, ErrFull) {
			t.Errorf("a third: %v, want ErrFull", err)
		}
		wg.Wait()
	})
}

// Asking a store immediately, one call after the other, does not allocate for the queue.
func TestStandingInLineAllocatesNothing(t *testing.T) {
	d := newDepot(0, 1)
	d.served = make([]string, 0, 10_000)
	a := &client{depot: d}
	a.takes = true
	step := Step{Kind: Store, Fetch: func(_ context.Context, now time.Duration, _ *Call) time.Duration {
		d.Each(func(Asker) Kind { return Go })
		return now
	}}
	c := &Call{Asker: asks(func() Step { return step })}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		now := clock.System.Now()
		*c = Call{Asker: c.Asker, Until: now + time.Second}
		if _, err := d.Join(ctx, now, c); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type asks func() Step

func (a asks) Ask(time.Duration, time.Duration) Step { return a() }

// If a store's client panics, only its caller is affected.
func TestAPanicOfWhoFetchesLeavesTheLineWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(10*ms, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if r := recover(); r != "lost" {
					t.Errorf("recovered %v", r)
				}
			}()
			now := clock.System.Now()
			_, _ = d.Join(t.Context(), now, &Call{Until: now + time.Second, Asker: asks(func() Step {
				return Step{Kind: Store, Fetch: func(context.Context, time.Duration, *Call) time.Duration {
					time.Sleep(5 * ms)
					panic("lost")
				}}
			})})
		})
		synctest.Wait()
		if err := d.joins(t.Context(), "b", 0, time.Second); err != nil || d.Waiting() != 0 {
			t.Errorf("the next one: %v, and %d wait", err, d.Waiting())
		}
		wg.Wait()
	})
}

// A new call that becomes the first makes the driver fetch immediately: the last fetch brought nothing, but that says
// nothing about this call.
func TestWhoComesFirstHasTheDriverFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(10*ms, 0)
		d.pause = time.Hour
		var wg sync.WaitGroup
		wg.Go(func() { _ = d.joins(t.Context(), "a", 1, time.Second) })
		time.Sleep(100 * ms)
		synctest.Wait() // the driver has returned and sleeps
		d.each = 1
		begin := clock.System.Now()
		if err := d.joins(t.Context(), "b", 0, time.Second); err != nil || clock.System.Now()-begin != 10*ms {
			t.Errorf("went after %v, want 10ms: %v", clock.System.Now()-begin, err)
		}
		wg.Wait()
	})
}
