package dynamostore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// clients are some processes with their own clocks, far from a server that has the true time. They record when each
// ask was executed.
type clients struct {
	*fake
	stores []*Store

	mu   sync.Mutex
	done map[uint64]time.Time
}

// newFleet returns processes with wrong clocks. Half of the wall clocks are half a second off, and the quartzes are
// wrong by up to 100 parts per million. The server reports whole seconds, and its front ends differ by up to 5ms.
func newFleet(n int, rng *rand.Rand) *clients {
	f := &clients{fake: newFake(nil), done: make(map[uint64]time.Time)}
	var mu sync.Mutex
	random := func(most time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(int64(most)))
	}
	f.now = func() time.Time { return time.Now().Add(random(10*time.Millisecond) - 5*time.Millisecond) }
	f.wait = func() { time.Sleep(500*time.Microsecond + random(3*time.Millisecond)) }
	f.took = f.executed
	for i := range n {
		begin, off, wrong := time.Now(), time.Duration(i%2)*500*time.Millisecond, 1+random(200)-100
		now := func() time.Time {
			d := time.Since(begin)
			return begin.Add(off + d + d/1_000_000*wrong)
		}
		f.stores = append(f.stores, New(clientOf(f.fake), "weir", Options{Margin: 6 * time.Millisecond, now: now}))
	}
	return f
}

func (f *clients) executed(it map[string]av) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, v := range it {
		if text, ok := v["S"].(string); ok && name[0] == 'l' {
			if id := parseAnswer(text).id; f.done[id].IsZero() {
				f.done[id] = time.Now()
			}
		}
	}
}

// A spent is units that were granted.
type spent struct {
	at time.Time
	n  int64
}

// hammer makes goroutines of all processes take as many units as possible for a time.
func (f *clients) hammer(t *testing.T, d time.Duration, claim func(now time.Time) fleet.Claim) (all []spent) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(d)
	for i, s := range f.stores {
		for g := range 2 {
			lane := uint64(i)<<8 | uint64(g)
			wg.Go(func() {
				for time.Now().Before(end) {
					a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: lane, Copies: 1 + rand.Int64N(3), Claims: []fleet.Claim{claim(s.clock.read().time())}}
					if err := s.Take(context.Background(), a); err != nil {
						if err == fleet.ErrWindow {
							continue
						}
						t.Error(err)
						return
					}
					if a.Granted > 0 {
						f.mu.Lock()
						at := f.done[a.ID]
						f.mu.Unlock()
						mu.Lock()
						all = append(all, spent{at, a.Granted})
						mu.Unlock()
						continue
					}
					time.Sleep(max(time.Millisecond, min(a.Grants[0].Wait, 20*time.Millisecond)))
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return all
}

const hammerFor = 10 * time.Second

func sum(all []spent) (n int64) {
	for _, s := range all {
		n += s.n
	}
	return n
}

func wantUsed(t *testing.T, f *clients, all []spent, could int64) {
	t.Helper()
	n := sum(all)
	t.Logf("%d of %d used", n, could)
	for _, s := range f.stores {
		t.Logf("%+v", s.Stats())
	}
	if float64(n) < 0.98*float64(could) {
		t.Errorf("%d of %d used, want 98%%", n, could)
	}
}

func TestFleetKeepsBucket(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		f := newFleet(4, rand.New(rand.NewPCG(seed, 1)))
		r := &fleet.Rule{Name: "a", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 100})}
		begin := f.calibrated(t)
		all := f.hammer(t, hammerFor, func(time.Time) fleet.Claim { return fleet.Claim{Rule: r, Key: "k", Cost: 1} })
		level, at := time.Duration(0), begin // as time: a unit takes 10ms
		for _, s := range all {
			level = max(0, level-s.at.Sub(at)) + time.Duration(s.n)*10*time.Millisecond
			at = s.at
			if level > time.Second+time.Microsecond {
				t.Fatalf("seed %#x: %v over the limit %v after the start", seed, level-time.Second, s.at.Sub(begin))
			}
		}
		wantUsed(t, f, all, 100+100*int64(hammerFor/time.Second))
	})
}

// calibrated waits until all processes know the time.
func (f *clients) calibrated(t *testing.T) time.Time {
	for _, s := range f.stores {
		calibrated(t, s)
	}
	return time.Now()
}

func TestFleetKeepsRolling(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		f := newFleet(4, rand.New(rand.NewPCG(seed, 1)))
		f.calibrated(t)
		r := &fleet.Rule{Name: "a", Shape: limit.Rolling, Amount: 100, Ring: bucket.RingOf(bucket.Window{Amount: 100, Per: time.Second})}
		all := f.hammer(t, hammerFor, func(time.Time) fleet.Claim { return fleet.Claim{Rule: r, Key: "k", Cost: 1} })
		var inside int64
		first := 0
		for _, s := range all {
			for inside += s.n; s.at.Sub(all[first].at) >= time.Second; first++ {
				inside -= all[first].n
			}
			if inside > 100 {
				t.Fatalf("seed %#x: %d units in a second, want 100 at most", seed, inside)
			}
		}
		wantUsed(t, f, all, 100*int64(hammerFor/time.Second))
	})
}

func TestFleetKeepsFixed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		f := newFleet(4, rand.New(rand.NewPCG(seed, 1)))
		f.calibrated(t)
		begin := time.Now().Truncate(time.Second)
		r := &fleet.Rule{Name: "a", Shape: limit.Calendar, Amount: 100}
		all := f.hammer(t, hammerFor, func(now time.Time) fleet.Claim {
			start := begin.Add(now.Sub(begin) / time.Second * time.Second)
			return fleet.Claim{Rule: r, Key: "k", Cost: 1, Windows: limit.Windows{Start: start, End: start.Add(time.Second), Next: start.Add(2 * time.Second)}}
		})
		windows := make(map[time.Duration]int64)
		for _, s := range all {
			windows[s.at.Sub(begin)/time.Second] += s.n
		}
		for w, n := range windows {
			if n > 100 {
				t.Errorf("seed %#x: %d units in window %d, want 100 at most", seed, n, w)
			}
		}
		whole := make([]spent, 0, len(all)) // complete windows only; units of the first may count in two
		first, last := all[0].at.Sub(begin)/time.Second, all[len(all)-1].at.Sub(begin)/time.Second
		for _, s := range all {
			if w := s.at.Sub(begin) / time.Second; w > first+1 && w < last {
				whole = append(whole, s)
			}
		}
		wantUsed(t, f, whole, 100*int64(last-first-2))
	})
}
