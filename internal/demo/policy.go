package demo

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/adaptive"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
)

// policy is what one would write for an upstream of which one knows the limit: a
// little under it, as requests do not arrive as evenly as they were sent. Retries
// and their budget are the defaults. The breaker is quicker than its default,
// because the whole demo is shorter than that.
func policy(rate int) weir.Policy {
	return weir.Policy{
		Limits: []limit.Limit{{
			Name:     "requests",
			Rate:     bucket.Rate{Amount: int64(rate) * 95 / 100, Per: time.Second, Burst: int64(rate / 20)},
			Adaptive: adaptive.Config{On: true},
		}},
		Breaker: breaker.Config{Consecutive: 5, Open: 250 * time.Millisecond, ProbeTimeout: 2 * time.Second},
	}
}
