package bench

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var good = outcome.Outcome{Class: outcome.OK}

func weirLimiter(every time.Duration, burst int64) op {
	l := must(limit.New(clock.System.Now(), weirLimit(every, burst)))
	return func() bool { return l.Try(clock.System.Now(), 1) }
}

func weirLimit(every time.Duration, burst int64) limit.Limit {
	return limit.Limit{Name: "bench", Rate: bucket.Rate{Amount: 1, Per: every, Burst: burst}}
}

// The compared breakers use a share of failed calls, so weir's does as well. Its default is a count of failures.
var weirShare = breaker.Config{Share: 0.5, Window: 10 * time.Second}

func weirBreaker() op {
	b := breaker.New("bench", weirShare, nil)
	return func() bool {
		now := clock.System.Now()
		p, _, ok := b.Admit(now)
		b.Report(now, p, good)
		return ok
	}
}

func weirUpstream() *weir.Upstream { return weirWith(weir.Concurrency{}) }

func weirWith(c weir.Concurrency) *weir.Upstream {
	return must(weir.New("bench", weir.Policy{
		Limits:      []limit.Limit{weirLimit(time.Nanosecond, 1<<40)},
		Breaker:     weirShare,
		Concurrency: c,
	}, weir.Options{}))
}

func weirDecision() op { return decisionOf(weirUpstream(), weir.Call{}) }

// weirInFlight also bounds the calls in flight.
func weirInFlight() op {
	return decisionOf(weirWith(weir.Concurrency{Auto: true, Min: 1000}), weir.Call{})
}

func decisionOf(u *weir.Upstream, c weir.Call) op {
	return func() bool {
		var p weir.Permit
		if !u.Try(c, &p).Allowed {
			return false
		}
		p.Report(good)
		return true
	}
}

func weirDo() op { return doOf(weirUpstream(), weir.Call{}) }

func doOf(u *weir.Upstream, c weir.Call) op {
	ctx := context.Background()
	return func() bool {
		n, err := weir.Do(ctx, u, c, func(context.Context) (int, error) { return 1, nil })
		return n == 1 && err == nil
	}
}

func weirDelay() op {
	var c retry.Config
	return func() bool { return c.Delay(3, 0, outcome.Failed, nil) >= 0 }
}
