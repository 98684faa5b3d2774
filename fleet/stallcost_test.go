package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A stallingStore responds after rtt. Requests during a stall get their responses when the stall ends.
type stallingStore struct {
	Store
	rtt, jitter time.Duration
	from, to    time.Duration // of the stall
	drops       bool          // requests during the stall are lost
}

func (s *stallingStore) pass(ctx context.Context) error {
	sleep := func(d time.Duration) error {
		if d <= 0 {
			return nil
		}
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := sleep(s.rtt / 2); err != nil {
		return err
	}
	if s.jitter > 0 {
		if err := sleep(rand.N(s.jitter)); err != nil {
			return err
		}
	}
	if now := clock.System.Now(); now >= s.from && now < s.to {
		if s.drops {
			<-ctx.Done()
			return ctx.Err()
		}
		return sleep(s.to - now)
	}
	return nil
}

func (s *stallingStore) Take(ctx context.Context, a *Ask) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	err := s.Store.Take(ctx, a)
	time.Sleep(s.rtt - s.rtt/2)
	return err
}

func (s *stallingStore) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if err := s.pass(ctx); err != nil {
		return Standing{}, err
	}
	a, err := s.Store.Beat(ctx, b)
	time.Sleep(s.rtt - s.rtt/2)
	return a, err
}

// stallOf simulates 100 users of 4 processes. Each user has a limit of 10 calls per minute, as a burst of 10 or
// in any minute. They call at random at 80% of that and do not wait. The store stalls for d after 30 s. stallOf
// returns the refused calls, the calls from the start of the stall until half a second after it, and by how
// many calls a user's limit was exceeded at worst.
func stallOf(t *testing.T, shape limit.Shape, seed uint64, s *stallingStore, d time.Duration) (refused, within int, over int64) {
	l := limit.Limit{Name: "user", Scope: "user", Shape: shape, Rate: bucket.Rate{Amount: 10, Per: time.Minute}}
	if shape == limit.Bucket {
		l.Rate.Burst = 10
	}
	s.Store = NewMemory(nil)
	begin := clock.System.Now()
	s.from, s.to = begin+30*time.Second, begin+30*time.Second+d
	_, regs := fleetOf(t, 4, s, l, Options{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	went := make(map[string][]use)
	const users = 100
	rng := rand.New(rand.NewPCG(seed, 7))
	for at := time.Duration(0); at < 90*time.Second+d; {
		at += time.Duration(rng.ExpFloat64() / (users * 0.8 * 10 / 60) * float64(time.Second))
		if at >= s.from-begin && at < s.to-begin+500*time.Millisecond {
			within++
		}
		r, key := regs[rng.IntN(len(regs))], fmt.Sprint(rng.IntN(users))
		wg.Go(func() {
			time.Sleep(begin + at - clock.System.Now())
			ok, v, err := goOne(t.Context(), clock.System.Now(), limit.Charge{Registry: r, Key: key, Cost: 1})
			mu.Lock()
			defer mu.Unlock()
			if now := clock.System.Now(); ok {
				went[key] = append(went[key], use{now, 1})
			} else if refused++; err != nil {
				t.Errorf("at %v: %v, %+v", now-begin, err, v)
			}
		})
	}
	wg.Wait()
	for _, all := range went {
		worst, _ := overUsed(l, all, begin)
		over = max(over, worst)
	}
	return refused, within, over
}

// A stall of the store costs users at most their calls during the stall and half a second more.
func TestStallCostsUsersItsLengthAndHalfASecond(t *testing.T) {
	for _, c := range []struct {
		shape limit.Shape
		rtt   time.Duration
	}{{limit.Bucket, 200 * time.Microsecond}, {limit.Bucket, 4 * time.Millisecond}, {limit.Bucket, 20 * time.Millisecond}, {limit.Rolling, 4 * time.Millisecond}} {
		for _, drops := range []bool{false, true} {
			for _, d := range []time.Duration{200 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second, 11 * time.Second} {
				t.Run(fmt.Sprintf("%v, drops %v, %v, %v", c.shape, drops, c.rtt, d), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { stallCosts(t, c.shape, stallingStore{rtt: c.rtt, drops: drops}, d) })
				})
			}
		}
	}
}

func stallCosts(t *testing.T, shape limit.Shape, s stallingStore, d time.Duration) {
	var more, most int
	for seed := range uint64(2) {
		calm, stalling := s, s
		before, _, over := stallOf(t, shape, seed, &calm, 0)
		if over > 0 {
			t.Errorf("seed %d without a stall: %d over", seed, over)
		}
		refused, within, over := stallOf(t, shape, seed, &stalling, d)
		if over > 0 {
			t.Errorf("seed %d: %d over", seed, over)
		}
		more, most = more+refused-before, most+within
	}
	if more > most {
		t.Errorf("a stall of %v costs %d calls, want the %d at most that were made until half a second after it", d, more, most)
	}
}

// A busyClock is the clock of a busy machine: readings take time, one after the other.
type busyClock struct {
	clock.Clock
	turn chan struct{} // a channel of the bubble: a reading waits for the one before
	each time.Duration
}

func (c *busyClock) Now() time.Duration {
	c.turn <- struct{}{}
	time.Sleep(c.each)
	<-c.turn
	return c.Clock.Now()
}

// Many calls within the limits at the same time are all served, with a distant store and a busy machine.
func TestCallsWithinTheBurstAreNotRefusedByAFarStore(t *testing.T) {
	for _, c := range []struct {
		calls int
		each  time.Duration // duration of one reading of the clock
		after time.Duration // since the start
	}{{300, 0, 0}, {300, 0, 10 * time.Second}, {300, 40 * time.Microsecond, 10 * time.Second}, {3000, 0, time.Second}, {3000, 4 * time.Microsecond, 10 * time.Second}} {
		for _, lease := range []time.Duration{0, -1} {
			for _, rtt := range []time.Duration{0, time.Millisecond, 9 * time.Millisecond, 15 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond} {
				t.Run(fmt.Sprintf("%d calls after %v/busy %v/lease %v/%v", c.calls, c.after, c.each, lease, rtt), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { burstOf(t, Options{Lease: lease}, c.calls, rtt, c.each, c.after) })
				})
			}
		}
	}
}

func burstOf(t *testing.T, o Options, calls int, rtt, each, after time.Duration) {
	c := &busyClock{Clock: clock.System, turn: make(chan struct{}, 1), each: each}
	if each > 0 {
		o.Clock = c
	}
	f := New(&stallingStore{Store: NewMemory(nil), rtt: rtt}, o)
	f.Start()
	defer func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var regs []*limit.Registry
	for _, l := range []limit.Limit{
		{Name: "global", Rate: bucket.Rate{Amount: 2000, Per: time.Second, Burst: 4000}},
		{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 10}},
	} {
		r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		regs = append(regs, r)
	}
	time.Sleep(after)
	var mu sync.Mutex
	var wg sync.WaitGroup
	refused, example := 0, limit.Verdict{}
	for i := range calls {
		wg.Go(func() {
			ok, v, err := goOne(t.Context(), clock.System.Now(),
				limit.Charge{Registry: regs[0], Cost: 1}, limit.Charge{Registry: regs[1], Key: fmt.Sprint(i / 5), Cost: 1})
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				if refused++; err != nil {
					t.Error(err)
				}
				example = v
			}
		})
	}
	wg.Wait()
	if refused > 0 {
		t.Errorf("%d of %d calls refused: %+v", refused, calls, example)
	}
}
