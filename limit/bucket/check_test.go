package bucket

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// A level is the textbook's token bucket in exact arithmetic. It must never fall below zero. That is equivalent to
// the promise that no window of length t grants more than burst + rate*t, with one nanosecond of clock resolution.
type level struct {
	rate, burst, left *big.Rat // units per nanosecond, units, units
	slack             *big.Rat // one nanosecond's units
	now               time.Duration
}

func newLevel(now time.Duration, r Rate) *level {
	v := &level{rate: big.NewRat(r.Amount, int64(r.Per)), burst: new(big.Rat).SetInt64(r.Full()), now: now}
	v.left = new(big.Rat).Set(v.burst)
	v.slack = new(big.Rat).Set(v.rate)
	return v
}

func (v *level) use(now time.Duration, n int64) error {
	dt := new(big.Rat).SetInt64(int64(now - v.now))
	v.now = now
	v.left.Add(v.left, dt.Mul(dt, v.rate))
	if v.left.Cmp(v.burst) > 0 {
		v.left.Set(v.burst)
	}
	v.left.Sub(v.left, new(big.Rat).SetInt64(n))
	if short := new(big.Rat).Neg(v.left); short.Cmp(v.slack) > 0 {
		return fmt.Errorf("at %v, after %d units: %s over the limit", now, n, short.FloatString(12))
	}
	return nil
}

var rates = []Rate{
	{3, time.Second, 0}, {3, time.Second, 10}, {7, time.Minute, 0}, {1, 24 * time.Hour, 25},
	{250_000, time.Minute, 0}, {30_000_000, time.Second, 0}, {1e9, time.Second, 1}, {1e9, time.Second, 1e6},
	{63e9, time.Second, 0}, {999_999_937, time.Second, 5}, {1, time.Second, 1}, {100_000, time.Second, 100},
	{1, 1461 * 24 * time.Hour, 1}, {17, 365 * 24 * time.Hour, 40}, {1 << 62, 1 << 57, 1},
}

// anyRate returns a valid rate of any size.
func anyRate(rng *rand.Rand) Rate {
	if rng.IntN(4) == 0 {
		return rates[rng.IntN(len(rates))]
	}
	for {
		r := Rate{Amount: upTo(rng, 1<<40), Per: time.Duration(upTo(rng, 1<<52)), Burst: upTo(rng, 1<<30)}
		if r.Validate() == nil {
			return r
		}
	}
}

// upTo returns a number from 1 to n, of any order of magnitude.
func upTo(rng *rand.Rand, n int64) int64 {
	v := int64(1)
	for v < n/16 && rng.IntN(8) > 0 {
		v *= 1 + rng.Int64N(16)
	}
	return 1 + rng.Int64N(min(v, n))
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
