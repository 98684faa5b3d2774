package sim_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sim"
)

// A fleetRun is a fleet with demand by Zipf's law, and a store with a latency of a millisecond.
type fleetRun struct {
	instances int
	rate      bucket.Rate
	load      float64 // offered, as a share of the rate
	lease     time.Duration
	lasts     time.Duration
	seed      uint64
}

type fleetResult struct {
	offered, served, asks int
	over                  int64 // units beyond the limit in the worst window
}

func (f fleetRun) run(t testing.TB) (r fleetResult) {
	w := sim.New(f.seed)
	defer w.Close()
	clock := w.Clock()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := &distant{Store: fleet.NewMemory(func() time.Time { return begin.Add(w.Now()) }), clock: clock, there: time.Millisecond}
	var went []time.Duration
	ctx := context.Background()
	harmonic := 0.0
	for i := range f.instances {
		harmonic += 1 / float64(i+1)
	}
	for i := range f.instances {
		fleet := fleet.New(store, fleet.Options{Clock: clock, Rand: w.Rand(), Lease: f.lease})
		u, err := weir.New("up", weir.Policy{
			Limits:  []limit.Limit{{Name: "all", Rate: f.rate}},
			MaxWait: 500 * time.Millisecond,
		}, weir.Options{Clock: clock, Rand: w.Rand(), Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		w.Go(func() { fleet.Run(ctx) })
		own := f.load * f.rate.PerSecond() / harmonic / float64(i+1)
		w.Go(func() { f.arrive(w, u, own, &r, &went) })
	}
	if err := w.RunUntil(f.lasts); err != nil {
		t.Fatal(err)
	}
	r.asks = store.asks
	r.over = overBucket(went, f.rate)
	return r
}

// arrive starts calls at random instants, at a rate per second.
func (f fleetRun) arrive(w *sim.World, u *weir.Upstream, perSecond float64, r *fleetResult, went *[]time.Duration) {
	for {
		if w.Clock().Sleep(context.Background(), exponential(w.Rand(), perSecond)) != nil {
			return
		}
		w.Go(func() {
			r.offered++
			if p, err := u.Acquire(context.Background(), weir.Call{}); err == nil {
				r.served++
				*went = append(*went, w.Now())
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		})
	}
}

func exponential(r *rand.Rand, perSecond float64) time.Duration {
	return time.Duration(-math.Log(1-r.Float64()) / perSecond * float64(time.Second))
}

// overBucket returns by how many units the worst window exceeds burst + rate*t.
func overBucket(went []time.Duration, r bucket.Rate) (worst int64) {
	slices.Sort(went)
	// If level is the debt of a bucket to which every unit adds, the highest level minus the burst is the excess of
	// the worst window.
	var level float64
	var last time.Duration
	for _, at := range went {
		level = max(0, level-r.PerSecond()*(at-last).Seconds()) + 1
		last = at
		worst = max(worst, int64(math.Ceil(level-float64(r.Full())-1e-6)))
	}
	return worst
}

// distant is a store with a latency, which counts requests.
type distant struct {
	fleet.Store
	clock *sim.Clock
	there time.Duration
	asks  int
}

func (d *distant) Take(ctx context.Context, a *fleet.Ask) error {
	d.asks++
	if err := d.clock.Sleep(ctx, d.there/2); err != nil {
		return err
	}
	err := d.Store.Take(ctx, a)
	if err := d.clock.Sleep(ctx, d.there/2); err != nil {
		return err
	}
	return err
}

func TestAThousandInstancesShareALimit(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	f := fleetRun{instances: 1000, rate: bucket.Rate{Amount: 10_000, Per: time.Second}, load: 0.9, lasts: 10 * time.Second, seed: 1}
	r := f.run(t)
	t.Logf("offered %d, served %.2f%%, asks %.1f%% of one a call, %d over", r.offered, 100*float64(r.served)/float64(r.offered), 100*float64(r.asks)/float64(r.offered), r.over)
	if r.over > 0 {
		t.Errorf("%d over the limit in some window", r.over)
	}
	if float64(r.served) < 0.995*float64(r.offered) {
		t.Errorf("served %d of %d, want 99.5%%", r.served, r.offered)
	}
	if float64(r.asks) > 0.35*float64(r.offered) {
		t.Errorf("%d asks for %d calls, want at most 35%%", r.asks, r.offered)
	}
}
