package fleet

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

func units(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// upTo returns a number from 1 to n of a random order of magnitude.
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

func cases(t *testing.T, n int, run func(rng *rand.Rand) error) {
	t.Helper()
	for range n {
		seed := rand.Uint64()
		if err := run(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %#x: %v", seed, err)
		}
	}
}
