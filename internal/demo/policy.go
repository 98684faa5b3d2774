package demo

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/adaptive"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
)

// burst is what the upstream takes at once: 150 ms worth.
func burst(rate int) int64 { return int64(rate) * 3 / 20 }

// policy is what one would write for an upstream of which one knows the limit.
// The rate is a little under it, and the burst well under it: requests do not
// arrive as evenly as they were sent, and a program that the machine holds up
// sends afterwards what came due meanwhile. Retries and their budget are the
// defaults. The breaker, and a rate that was cut, come back sooner than theirs,
// because the whole demo is shorter than that.
func policy(rate int) weir.Policy {
	return weir.Policy{
		Limits: []limit.Limit{{
			Name:     "requests",
			Rate:     bucket.Rate{Amount: int64(rate) * 19 / 20, Per: time.Second, Burst: max(1, int64(rate)/25)},
			Adaptive: adaptive.Config{On: true, Recovery: 2 * time.Second},
		}},
		Breaker: breaker.Config{Consecutive: 5, Open: 250 * time.Millisecond, ProbeTimeout: 2 * time.Second},
	}
}
