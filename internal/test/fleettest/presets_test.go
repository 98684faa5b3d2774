//go:build unix

package fleettest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A shaky is a process's connection to a shared store, which fails sometimes.
type shaky struct {
	fleet.Store
	down *atomic.Bool
}

var errShaky = errors.New("no answer")

func (s shaky) Take(ctx context.Context, a *fleet.Ask) error {
	if s.down.Load() {
		return errShaky
	}
	err := s.Store.Take(ctx, a)
	if time.Sleep(2 * time.Millisecond); s.down.Load() { // the response is lost
		return errShaky
	}
	return err
}

func (s shaky) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if s.down.Load() {
		return fleet.Standing{}, errShaky
	}
	return s.Store.Beat(ctx, b)
}

// used is a number of admitted units of a limit.
type used struct {
	at time.Time
	n  int64
}

// overBy returns by how many units the worst window exceeds a limit.
func overBy(l limit.Limit, all []used) (worst int64) {
	slices.SortStableFunc(all, func(a, b used) int { return a.at.Compare(b.at) })
	var m bucket.Meter
	if l.Shape == limit.Bucket {
		m = bucket.MeterOf(l.Rate)
	}
	windows := make(map[time.Time]int64)
	var level, sum int64
	first := 0
	for i, u := range all {
		switch l.Shape {
		case limit.Bucket:
			if i > 0 {
				level = max(0, level-m.Drains(u.at.Sub(all[i-1].at).Microseconds()))
			}
			level += u.n * m.Unit
			worst = max(worst, (level-m.Cap)/m.Unit)
		case limit.Rolling:
			for sum += u.n; !all[first].at.After(u.at.Add(-l.Per)); first++ {
				sum -= all[first].n
			}
			worst = max(worst, sum-l.Amount)
		default:
			start := l.Windows(u.at).Start
			windows[start] += u.n
			worst = max(worst, windows[start]-l.Amount)
		}
	}
	return worst
}

// TestPresetsWhileTheStoreComesAndGoes checks that fleets keep every shared limit of a preset, individually and together, while
// processes lose the store, one by one and all, also around the end of the day.
func TestPresetsWhileTheStoreComesAndGoes(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for _, name := range config.Presets() {
		f, err := config.Parse(name, []byte("upstreams: {up: {url: https://h, preset: "+name+"}}"), none)
		if err != nil {
			t.Fatal(err)
		}
		var all []limit.Limit
		for _, l := range f.Upstreams[0].Policy.Limits {
			if l.Shares() {
				all = append(all, l)
			}
		}
		sets := [][]limit.Limit{all}
		for _, l := range all {
			sets = append(sets, []limit.Limit{l})
		}
		for i, limits := range sets {
			if len(limits) == 0 || i > 0 && len(all) == 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				t.Parallel()
				for seed := range histories() {
					synctest.Test(t, func(t *testing.T) { shake(t, limits, seed) })
				}
			})
		}
	}
}

// histories returns the number of histories per preset.
func histories() uint64 {
	if *full {
		return 40
	}
	return uint64(campaign.Of(1, 8))
}

// shake makes four processes call as often as possible for some minutes.
func shake(t *testing.T, limits []limit.Limit, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	zone, _ := bucket.Zone(cmp.Or(limits[len(limits)-1].Zone, "UTC"))
	today := time.Now().In(zone)
	time.Sleep(time.Date(today.Year(), today.Month(), today.Day()+1, 0, 0, 0, 0, zone).Add(-4*time.Minute + time.Second/3).Sub(today))
	store := fleet.NewMemory(nil)
	went := make([][]used, len(limits))
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(8 * time.Minute)
	var fleets []*fleet.Fleet
	var ways []*atomic.Bool
	for range 4 {
		down := new(atomic.Bool)
		f := fleet.New(shaky{store, down}, fleet.Options{Outage: time.Minute, Without: fleet.Without{Refuse: true}})
		f.Start()
		fleets, ways = append(fleets, f), append(ways, down)
		var regs []*limit.Registry
		for _, l := range limits {
			reg, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
			if err != nil {
				t.Fatal(err)
			}
			regs = append(regs, reg)
		}
		for range 2 {
			rng := rand.New(rand.NewPCG(r.Uint64(), 2))
			wg.Go(func() {
				for time.Now().Before(end) {
					p, costs := new(limit.Charges), make([]int64, len(regs))
					for i, reg := range regs {
						if costs[i] = 1; reg.Limit().UnitName() != limit.Requests {
							costs[i] = 1 + rng.Int64N(max(1, limits[i].Full()/20))
						}
						p.Add(limit.Charge{Registry: reg, Cost: costs[i]})
					}
					if ok := goes(p, 2*time.Second); ok {
						mu.Lock()
						for i := range went {
							went[i] = append(went[i], used{time.Now(), costs[i]})
						}
						mu.Unlock()
					}
					time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
				}
			})
		}
	}
	for time.Now().Before(end) {
		some := ways
		if n := r.IntN(2 * len(ways)); n < len(ways) {
			some = ways[n : n+1]
		}
		for _, w := range some {
			w.Store(true)
		}
		time.Sleep(time.Duration(r.Int64N(int64(30 * time.Second))))
		for _, w := range some {
			w.Store(false)
		}
		time.Sleep(time.Duration(r.Int64N(int64(30 * time.Second))))
	}
	wg.Wait()
	for _, f := range fleets {
		_ = f.Close(context.Background())
	}
	for i, l := range limits {
		if len(went[i]) == 0 {
			t.Errorf("seed %d: nothing went of %s", seed, l.Name)
		}
		if n := overBy(l, went[i]); n > 0 {
			t.Errorf("seed %d: %s is over by %d: %v", seed, l.Name, n, l)
		}
	}
}

// goes takes the units of a call and waits up to patience.
func goes(p *limit.Charges, patience time.Duration) bool {
	now := clock.System.Now()
	until := now + patience
	v := p.Take(now)
	for p.Asks(v, until-now) {
		var err error
		if v, err = p.Fetch(context.Background(), now, until, limit.Normal); err != nil || !v.OK {
			return false
		}
		now = clock.System.Now()
		v = p.Take(now)
	}
	return v.OK
}
