package line

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// A source is a token bucket (GCRA) that produces one second per second. It records every grant.
type source struct {
	*Lines
	mu     sync.Mutex
	depth  time.Duration // most that it holds; 0 means the cost of a call
	booked time.Duration // everything produced until then has been granted
	paused time.Duration
	begin  time.Duration
	at     []time.Duration
	cost   []time.Duration
	order  []string
	spent  map[string]time.Duration
}

func newSource(c clock.Clock, conf Config, depth time.Duration) *source {
	now := c.Now()
	return &source{Lines: NewLines(c, conf), depth: depth, booked: now - depth, begin: now, spent: make(map[string]time.Duration)}
}

// take takes from the time produced since an instant, or returns the wait until it is enough.
func (s *source) take(now, since time.Duration, name string, cost time.Duration) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused > now {
		return s.paused - now
	}
	depth := s.depth
	if depth == 0 {
		depth = cost
	}
	if wait = max(s.booked, now-depth) + cost - now; wait > 0 {
		return wait
	}
	s.booked = max(s.booked, max(since, now-100*ms)-depth) + cost
	s.at, s.cost = append(s.at, now-s.begin), append(s.cost, cost)
	s.order = append(s.order, name)
	s.spent[name] += cost
	return 0
}

// after returns when a call of this cost can go behind other calls.
func (s *source) after(cost time.Duration) func(now time.Duration, ahead int64) time.Duration {
	return func(now time.Duration, ahead int64) time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		depth := s.depth
		if depth == 0 {
			depth = cost
		}
		return max(s.paused-now, max(s.booked, now-depth)+time.Duration(ahead)+cost-now)
	}
}

// A taker is a call for a part of a source.
type taker struct {
	*source
	name string
	cost time.Duration
}

func (k *taker) Ask(now, since time.Duration) Step {
	if wait := k.take(now, since, k.name, k.cost); wait > 0 {
		return Step{Kind: Wait, For: wait}
	}
	return Step{Kind: Go}
}

// call waits for a part of the source.
func (s *source) call(ctx context.Context, c Call, cost time.Duration) (Place, error) {
	return s.callAs(ctx, c.Flow, c, cost)
}

func (s *source) callAs(ctx context.Context, name string, c Call, cost time.Duration) (Place, error) {
	c.Asker = &taker{s, name, cost}
	return s.Wait(ctx, s.clock.Now(), &c, Spot{Key: "api", Cost: cost, Units: int64(cost), After: s.after(cost)})
}

// flood starts calls of a flow that all wait.
func (s *source) flood(wg *sync.WaitGroup, n int, c Call, cost time.Duration) {
	c.Until = never
	for range n {
		wg.Go(func() { _, _ = s.call(context.Background(), c, cost) })
		synctest.Wait()
	}
}

// check reports anything that was left behind.
func (s *source) check(t *testing.T) {
	t.Helper()
	if !s.Empty() || len(s.byKey) != 0 || len(s.flows) != 0 {
		t.Errorf("%d wait, lines %v, flows %v; want none", s.waiting.Load(), s.byKey, s.flows)
	}
}

// over returns by how much the grants exceed the depth and the production, in the worst window.
func over(at, cost []time.Duration, depth time.Duration) (worst time.Duration) {
	level, last := time.Duration(0), time.Duration(0)
	for i, t := range at {
		level = max(0, level-(t-last)) + cost[i]
		last = t
		worst = max(worst, level-depth)
	}
	return worst
}

// A lateClock wakes sleepers up to most too late.
type lateClock struct {
	clock.Clock
	most time.Duration
	mu   sync.Mutex
	r    *rand.Rand
}

func (c *lateClock) Sleep(ctx context.Context, d time.Duration) error {
	err := c.Clock.Sleep(ctx, d)
	if err == nil {
		c.mu.Lock()
		late := time.Duration(c.r.Int64N(int64(c.most)))
		c.mu.Unlock()
		time.Sleep(late)
	}
	return err
}

// With calls that come, wait, leave and are paused, no window exceeds the source, everything available is used, each
// call ends in time, and a flow goes in order.
func TestPropertyOfLines(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) { historyOfALine(t, rand.New(rand.NewPCG(seed, 3)), seed) })
		if t.Failed() {
			return
		}
	}
}

func historyOfALine(t *testing.T, r *rand.Rand, seed uint64) {
	unit := time.Second / time.Duration(1+r.IntN(1000))
	burst := int64(1 + r.IntN(40))
	s := newSource(clock.System, Config{Longest: 5 + r.IntN(400), PerFlow: 3 + r.IntN(200)}, unit*time.Duration(burst))
	plain := seed%3 == 0
	if plain {
		s.Set(Config{})
	}
	n := 30 + r.IntN(120)
	end := 20 * unit * time.Duration(10+burst)
	var wg sync.WaitGroup
	for i := range n {
		c, cost := Call{Until: never}, unit*time.Duration(1+r.Int64N(burst))
		start, leaves := time.Duration(r.Int64N(int64(end))), time.Duration(math.MaxInt64)
		if plain {
			cost, start = unit, time.Duration(i)
		} else {
			c.Flow, c.Priority, c.Weight = string(rune('a'+r.IntN(5))), r.IntN(Priorities), r.IntN(4)
			if r.IntN(3) == 0 {
				c.Until = s.begin + start + time.Duration(r.Int64N(int64(end)))
			}
			if r.IntN(5) == 0 {
				leaves = time.Duration(r.Int64N(int64(end)))
			}
		}
		wg.Go(func() {
			time.Sleep(start)
			ctx, cancel := context.WithTimeout(t.Context(), leaves)
			defer cancel()
			_, err := s.callAs(ctx, string(rune(i)), c, cost)
			if now := clock.System.Now(); now > c.Until || leaves != math.MaxInt64 && now > s.begin+start+leaves {
				t.Errorf("seed %d: stayed too long: %v", seed, err)
			}
		})
	}
	if !plain {
		wg.Go(func() { s.pauses(rand.New(rand.NewPCG(seed, 4)), end) })
	}
	wg.Wait()
	if w := over(s.at, s.cost, s.depth); w > 0 {
		t.Errorf("seed %d: %v over", seed, w)
	}
	if plain && !slices.IsSorted(s.order) {
		t.Errorf("seed %d: not in order: %v", seed, s.order)
	}
	if most := unit * time.Duration(max(0, int64(n)-burst)); plain && most > 0 && s.at[n-1] > most+time.Duration(n) {
		t.Errorf("seed %d: the last of %d went after %v, want %v", seed, n, s.at[n-1], most)
	}
	s.check(t)
}

// pauses pauses the source a few times, and ends some of the pauses early.
func (s *source) pauses(r *rand.Rand, end time.Duration) {
	set := func(until time.Duration) {
		s.mu.Lock()
		s.paused = until
		s.mu.Unlock()
	}
	for range 3 {
		time.Sleep(time.Duration(r.Int64N(int64(end / 2))))
		long := time.Duration(r.Int64N(int64(end / 4)))
		set(clock.System.Now() + long)
		if r.IntN(2) == 0 {
			time.Sleep(long / 2)
			set(0)
			s.Kick()
		}
	}
}

// This checks the tests above: a queue that always allows lateness exceeds the source.
func TestTooMuchIsSeen(t *testing.T) {
	s := newSource(clock.System, Config{}, ms)
	now := clock.System.Now()
	for range 5 {
		s.take(now+50*ms, now-50*ms, "x", ms)
	}
	if over(s.at, s.cost, s.depth) == 0 {
		t.Error("five units at once of a burst of one are not too many")
	}
}

// A driver that wakes late wastes nothing, and exceeds the source at most by the production meanwhile.
func TestLateDriversLoseNothing(t *testing.T) {
	for _, burst := range []time.Duration{1, 10, 100} {
		for _, n := range []int{64, campaign.Of(1000, 100_000)} {
			synctest.Test(t, func(t *testing.T) {
				const most, d, unit = 5 * ms, 10 * time.Second, time.Second / 2_000
				c := &lateClock{Clock: clock.System, most: most, r: rand.New(rand.NewPCG(1, uint64(burst)))}
				s := newSource(c, Config{Longest: n, PerFlow: n}, burst*unit)
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						for ctx.Err() == nil {
							_, _ = s.call(ctx, Call{Until: never}, unit)
						}
					})
				}
				wg.Wait()
				use, worst := float64(len(s.at)-int(burst))/(2_000*d.Seconds()), over(s.at, s.cost, s.depth)
				t.Logf("burst %3d, %6d waiting: use %.5f, %v over", burst, n, use, worst)
				if use < 0.999 || worst > most+unit {
					t.Error("want a use of 0.999, and what comes in 5ms over at most")
				}
				s.check(t)
			})
		}
	}
}

func jain(x []float64) float64 {
	a, b := 0.0, 0.0
	for _, v := range x {
		a, b = a+v, b+v*v
	}
	return a * a / (b * float64(len(x)))
}

// A hundred flows of weights 1 to 4, with 2 to 100 callers each, get shares by weight.
func TestFlowsGetByTheirWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lateClock{Clock: clock.System, most: 5 * ms, r: rand.New(rand.NewPCG(1, 2))}
		const unit = time.Second / 5_000
		s := newSource(c, Config{}, 10*unit)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		weight := map[string]int{}
		for i := range 100 {
			call := Call{Flow: string(rune('A' + i)), Weight: 1 + i%4, Until: never}
			weight[call.Flow] = call.Weight
			for range max(call.Weight+1, i*i/100) { // enough that one call always waits
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _ = s.call(ctx, call, unit)
					}
				})
			}
		}
		wg.Wait()
		var x []float64
		for f, n := range s.spent {
			x = append(x, float64(n)/float64(weight[f]))
		}
		if j := jain(x); j < 0.999 || len(x) != 100 {
			t.Errorf("Jain's index of %d flows is %.5f", len(x), j)
		}
	})
}
