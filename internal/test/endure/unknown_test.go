package endure

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sim"
)

// unknownRate is the policy of the preset.
var unknownRate = preset("unknown")

// A crowd is many processes without a store that call one upstream, which has a limit and does not advertise it.
type crowd struct {
	processes int
	calls     int // of all processes
	span      time.Duration
	allowed   []int64 // requests per second in consecutive parts of the time; none means 100 throughout
}

// fared has the results of a crowd's calls.
type fared struct {
	throttled float64
	lost      float64
	end       float64   // seconds until the last call ended
	used      []float64 // used shares of the limit in each part of the time
}

// play makes each process call with the client that is created for it.
func (c crowd) play(t *testing.T, seed uint64, client func(w *sim.World) func(ctx context.Context, call func(context.Context) (int64, error)) error) fared {
	t.Helper()
	w := sim.New(seed)
	defer w.Close()
	if c.allowed == nil {
		c.allowed = []int64{100}
	}
	var parts []*sim.Upstream
	for _, n := range c.allowed {
		parts = append(parts, w.Upstream(sim.Behaviour{
			Rate: bucket.Rate{Amount: n, Per: time.Second, Burst: n}, Latency: 50 * time.Millisecond, Jitter: 20 * time.Millisecond,
		}))
	}
	part := c.span / time.Duration(len(parts))
	call := func(ctx context.Context) (int64, error) {
		return parts[min(int(w.Now()/part), len(parts)-1)].Call(ctx)
	}
	var f fared
	w.Go(func() {
		for i, n := range c.allowed {
			rest(w, part)
			f.used = append(f.used, float64(parts[i].Counts().OK)/(float64(n)*part.Seconds()))
		}
	})
	for range c.processes {
		do := client(w)
		w.Go(func() {
			gap := c.span / time.Duration(c.calls/c.processes)
			rest(w, time.Duration(w.Rand().Int64N(int64(gap))))
			for range c.calls / c.processes {
				w.Go(func() {
					if do(context.Background(), call) != nil {
						f.lost++
					}
					f.end = w.Now().Seconds()
				})
				rest(w, gap)
			}
		})
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for _, api := range parts {
		f.throttled += float64(api.Counts().Throttled)
	}
	return f
}

// rest sleeps in a goroutine that needs no cancellation.
func rest(w *sim.World, d time.Duration) {
	if err := w.Clock().Sleep(context.Background(), d); err != nil {
		panic(err)
	}
}

// backsOff is a client with full jitter between 1 and 64 s that does not give up.
func backsOff(w *sim.World) func(context.Context, func(context.Context) (int64, error)) error {
	return func(ctx context.Context, call func(context.Context) (int64, error)) error {
		for most := time.Second; ; most = min(2*most, 64*time.Second) {
			if _, err := call(ctx); err == nil {
				return nil
			}
			rest(w, time.Duration(w.Rand().Int64N(int64(most))))
		}
	}
}

// weirs are processes with the policy.
func weirs(t *testing.T, p weir.Policy) func(w *sim.World) func(context.Context, func(context.Context) (int64, error)) error {
	return func(w *sim.World) func(context.Context, func(context.Context) (int64, error)) error {
		u, err := weir.New("api", p, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, call func(context.Context) (int64, error)) error {
			_, err := weir.Do(ctx, u, weir.Call{Safe: true}, call)
			return err
		}
	}
}

var loads = []struct {
	name  string
	calls int
	span  time.Duration
}{{"1.2x", 7200, time.Minute}, {"2x", 12_000, time.Minute}, {"flood", 6000, time.Second}}

// Processes that do not know the limit or each other share it: few requests are throttled, no call is lost, and the total time
// is close to the time of a client that retries continuously.
func TestUnknownLimitIsShared(t *testing.T) {
	seeds, sizes := 1, []int{1, 100}
	if campaign.Long() {
		seeds, sizes = 20, []int{1, 3, 10, 30, 100, 300}
	}
	for _, load := range loads[raced.Of(0, 2):] {
		for _, n := range sizes {
			t.Run(fmt.Sprintf("%s/%d", load.name, n), func(t *testing.T) {
				t.Parallel()
				share, longer, lost := make([]float64, seeds), make([]float64, seeds), 0.0
				for seed := range seeds {
					c := crowd{processes: n, calls: load.calls, span: load.span}
					before, f := c.play(t, uint64(seed), backsOff), c.play(t, uint64(seed), weirs(t, unknownRate(t)))
					share[seed], longer[seed] = f.throttled/before.throttled, f.end/before.end
					lost += f.lost
				}
				throttled, end := median(share), median(longer)
				t.Logf("%.1f%% of the throttled requests of a client that backs off, %.2f times as long, %v lost", 100*throttled, end, lost)
				most, latest := 0.035, 1.1
				if n == 300 {
					most, latest = 0.08, 1.3
				}
				if throttled > most || end > latest || lost > 0 {
					t.Errorf("want at most %.1f%%, %.1f times as long, none lost", 100*most, latest)
				}
			})
		}
	}
}

// If the upstream's limit changes, most of it is used in each part of four minutes.
func TestUnknownLimitIsFollowed(t *testing.T) {
	for _, n := range []int{1, 10, 100}[campaign.Of(1, 0):campaign.Of(2, 3)] {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			for seed := range campaign.Of(1, 20) {
				f := crowd{processes: n, calls: 60_000, span: 4 * time.Minute, allowed: []int64{100, 20, 100, 400}}.play(t, uint64(seed), weirs(t, unknownRate(t)))
				t.Logf("used %.2f, %v throttled, %v lost", f.used, f.throttled, f.lost)
				if slices.Min(f.used) < 0.75 || f.lost > 0 {
					t.Errorf("seed %d: used %.2f, %v lost; want at least 0.75 in each part, none lost", seed, f.used, f.lost)
				}
			}
		})
	}
}

// An initial rate that is wrong by a factor of ten has little effect.
func TestWrongStartOfUnknownLimit(t *testing.T) {
	for _, n := range []int{1, 10, 100}[campaign.Of(1, 0):campaign.Of(2, 3)] {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			for seed := range campaign.Of(1, 20) {
				c := crowd{processes: n, calls: 12_000, span: time.Minute}
				plain := c.play(t, uint64(seed), weirs(t, unknownRate(t)))
				for _, start := range []float64{10, 1000} {
					p := unknownRate(t)
					p.Limits = slices.Clone(p.Limits)
					p.Limits[0].Adaptive.Start = start
					f := c.play(t, uint64(seed), weirs(t, p))
					t.Logf("start %v of all: used %.2f, %v throttled, %v unless said; %v lost", start, f.used, f.throttled, plain.throttled, f.lost)
					if f.used[0] < 0.8 || f.lost > 0 || f.throttled > 2*plain.throttled+20 {
						t.Errorf("seed %d, start %v: used %.2f, %v throttled, %v unless said, %v lost", seed, start, f.used, f.throttled, plain.throttled, f.lost)
					}
				}
			}
		})
	}
}

// An adaptive rate loses no calls either, if many processes each start at the full limit.
func TestAdaptiveLimitOfManyProcessesLosesNothing(t *testing.T) {
	for _, n := range []int{1, 100}[campaign.Of(1, 0):] {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := unknownRate(t)
			p.Limits = []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 100, Per: time.Second}, Adaptive: adaptive.Config{On: true}}}
			if f := (crowd{processes: n, calls: 6000, span: time.Second}).play(t, 1, weirs(t, p)); f.lost > 0 {
				t.Errorf("%v of 6,000 calls were lost", f.lost)
			}
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
