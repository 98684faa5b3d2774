package limit

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A level is the textbook's token bucket in exact arithmetic. Rate and burst may change, and nothing comes in pauses.
// If it never falls below zero, no window grants more than the limit allows.
type level struct {
	rate, burst, left *big.Rat // units per nanosecond, units, units
	slack             *big.Rat // one nanosecond's units, or one position of the line
	now, paused       time.Duration
}

func newLevel(now time.Duration, r bucket.Rate) *level {
	v := &level{now: now, burst: units(r.Full())}
	v.left = units(r.Full())
	v.slack = big.NewRat(r.Amount, int64(r.Per))
	v.rate = new(big.Rat).Set(v.slack)
	return v
}

func units(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (v *level) advance(now time.Duration) {
	from := max(v.now, min(v.paused, now))
	v.now = now
	v.left.Add(v.left, new(big.Rat).Mul(units(int64(now-from)), v.rate))
	if v.left.Cmp(v.burst) > 0 {
		v.left.Set(v.burst)
	}
}

func (v *level) use(now time.Duration, n int64) error {
	v.advance(now)
	v.left.Sub(v.left, units(n))
	if short := new(big.Rat).Neg(v.left); short.Cmp(v.slack) > 0 {
		return fmt.Errorf("at %v, after %d units: %s over the limit", now, n, short.FloatString(12))
	}
	return nil
}

func (v *level) pause(now, until time.Duration) {
	v.advance(now)
	v.paused = max(v.paused, until)
}

func (v *level) resume(now time.Duration) {
	v.advance(now)
	v.paused = min(v.paused, now)
}

func (v *level) pace(now time.Duration, perSecond float64) {
	v.advance(now)
	v.rate.SetFloat64(perSecond)
	v.rate.Quo(v.rate, units(int64(time.Second)))
}

// set changes rate and burst.
func (v *level) set(now time.Duration, r bucket.Rate) {
	v.advance(now)
	v.rate = big.NewRat(r.Amount, int64(r.Per))
	v.burst = units(r.Full())
	v.advance(now)
}

// upTo returns a number from 1 to n, of any order of magnitude.
func upTo(rng *rand.Rand, n int64) int64 {
	v := int64(1)
	for v < n/16 && rng.IntN(8) > 0 {
		v *= 1 + rng.Int64N(16)
	}
	return 1 + rng.Int64N(min(v, n))
}

func anyRate(rng *rand.Rand) bucket.Rate {
	for {
		r := bucket.Rate{Amount: upTo(rng, 1<<36), Per: time.Duration(upTo(rng, 1<<46)), Burst: upTo(rng, 1<<20)}
		if rng.IntN(2) == 0 {
			r = bucket.Rate{Amount: 1 + rng.Int64N(2000), Per: time.Second, Burst: rng.Int64N(30)}
		}
		if r.Validate() == nil {
			return r
		}
	}
}

func limitOf(r bucket.Rate) Limit { return Limit{Name: "put", Rate: r} }

func rollingLimit(amount int64, per time.Duration) Limit {
	return Limit{Name: "put", Shape: Rolling, Rate: bucket.Rate{Amount: amount, Per: per}}
}

func mustNew(t testing.TB, l Limit) *Limiter {
	t.Helper()
	m, err := New(0, l)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustRegistry(t testing.TB, l Limit) *Registry {
	t.Helper()
	r, err := NewRegistry(0, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func cases(t *testing.T, n int, run func(rng *rand.Rand) error) {
	t.Helper()
	for range n {
		seed := rand.Uint64()
		if err := run(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %#x: %v", seed, err)
		}
	}
}
