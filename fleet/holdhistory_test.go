package fleet

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Processes have leases and guards of all kinds, use their grants as late as allowed or earlier, and return
// some. The limit is never exceeded.
func TestHoldersAreNeverOver(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for seed := range uint64(campaign.Histories(100, 500)) {
		rng := rand.New(rand.NewPCG(seed, 77))
		amount, burst := 20+rng.Int64N(500), 20+rng.Int64N(500)
		h := newHoldHistory(t, rng, limit.Limit{Name: "l", Rate: bucket.Rate{Amount: amount, Per: sec, Burst: burst}})
		for range 1500 {
			h.pass()
			h.step()
		}
		if over := h.over(); over > float64(amount)/1000+0.01 { // units of one millisecond count together
			t.Errorf("seed %d: %d/s, burst %d: %.2f over", seed, amount, burst, over)
		}
	}
}

// The same for limits of few units, whose processes have different and changing distances to the store.
func TestHoldersAtAnyDistanceAreNeverOver(t *testing.T) {
	for seed := range uint64(campaign.Histories(100, 500)) {
		rng := rand.New(rand.NewPCG(seed, 78))
		amount, burst := 1+rng.Int64N(3), 1+rng.Int64N(20)
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: amount, Per: time.Duration(1+rng.IntN(20)) * sec, Burst: burst}}
		h := newHoldHistory(t, rng, l)
		h.specs = nil
		for _, guard := range []time.Duration{defaultGuard, 40 * time.Millisecond, 160 * time.Millisecond, longestGuard} {
			if s := newSpecFrom(l, -1, defaultGuard, guard); s.late {
				h.specs = append(h.specs, s)
			}
		}
		if len(h.specs) == 0 { // the limit is too small for a delay
			continue
		}
		for range 1500 {
			h.pass()
			h.step()
		}
		if over := h.over(); over > l.Rate.PerSecond()/1000+0.01 {
			t.Errorf("seed %d: %v: %.2f over", seed, l.Rate, over)
		}
	}
}

// A holdHistory is a history of processes with different holds.
type holdHistory struct {
	*holdersOf
	rng   *rand.Rand
	rate  bucket.Rate
	specs []*spec
	begin time.Time
	went  map[int64]int64 // used units by millisecond
	last  int64
}

func newHoldHistory(t *testing.T, rng *rand.Rand, l limit.Limit) *holdHistory {
	h := &holdHistory{holdersOf: newHolders(t), rng: rng, rate: l.Rate, went: make(map[int64]int64)}
	h.begin = h.now
	for _, lease := range []time.Duration{-1, 100 * time.Millisecond, 250 * time.Millisecond, time.Second, 2 * time.Second} {
		h.specs = append(h.specs, newSpec(l, lease, time.Duration(1+rng.IntN(40))*time.Millisecond))
	}
	return h
}

func (h *holdHistory) any() *spec { return h.specs[h.rng.IntN(len(h.specs))] }

// pass advances time by nothing, a little, some seconds, or more than the longest hold is remembered.
func (h *holdHistory) pass() {
	var most time.Duration
	switch n := h.rng.IntN(60); {
	case n == 0:
		most = 2 * time.Minute
	case n < 3:
		most = 3 * time.Second
	case n < 25:
		most = 30 * time.Millisecond
	default:
		return
	}
	h.now = h.now.Add(time.Duration(h.rng.Int64N(int64(most))).Truncate(time.Millisecond))
}

// step makes a request of one process. Some of its grant is used, at the latest when it expires.
func (h *holdHistory) step() {
	s := h.any()
	cost := h.rng.Int64N(4) * h.rng.Int64N(3)
	h.id++
	a := Ask{
		Group: "up", ID: h.id, Lane: 1, Copies: 1 + h.rng.Int64N(1+h.rate.Burst/4),
		Claims: []Claim{{Rule: &s.rule, Cost: cost, Extra: h.rng.Int64N(2) * h.rng.Int64N(30)}},
	}
	h.do(&a)
	n := a.Granted*cost + a.Grants[0].Extra
	if n > 0 && h.rng.IntN(4) == 0 {
		back := 1 + h.rng.Int64N(n)
		h.id++
		h.do(&Ask{Group: "up", ID: h.id, Lane: 1, Settle: []Settlement{{Rule: &h.any().rule, Back: back, Mark: a.Grants[0].Mark}}})
		n -= back
	}
	var hold time.Duration
	if s.late {
		hold = s.hold
	}
	if h.rng.IntN(2) == 0 {
		hold = time.Duration(h.rng.Int64N(int64(hold) + 1))
	}
	at := h.now.Add(hold).Sub(h.begin).Milliseconds()
	h.went[at] += n
	h.last = max(h.last, at)
}

func (h *holdHistory) do(a *Ask) {
	if err := h.m.Take(context.Background(), a); err != nil {
		h.t.Fatal(err)
	}
}

// over returns by how many units the usage exceeded the limit at worst.
func (h *holdHistory) over() (worst float64) {
	level, was := 0.0, int64(0)
	for at := range h.last + 1 {
		if n := h.went[at]; n > 0 {
			level = max(0, level-float64(at-was)*h.rate.PerSecond()/1000) + float64(n)
			worst, was = max(worst, level-float64(h.rate.Burst)), at
		}
	}
	return worst
}
