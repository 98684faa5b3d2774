package bench

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// A limiter is one library's rate limit of one token per `every`, with a burst. Its op reports whether the call was admitted.
// Every limiter is in the groups Allow, Deny and Admission.
type limiter struct {
	name    string
	new     func(every time.Duration, burst int64) op
	blocks  bool // it cannot refuse, only wait
	noBurst bool // one token at a time, without a burst
}

var limiters = []limiter{
	{name: "ref", new: refLimiter},
	{name: "weir", new: weirLimiter},
	{name: "x/time/rate", new: xTimeRate},
	{name: "uber/ratelimit", new: uberRatelimit, blocks: true},
	{name: "go-limiter", new: goLimiter},
	{name: "throttled", new: throttledGCRA},
	{name: "failsafe-smooth", new: failsafeSmooth, noBurst: true},
	{name: "failsafe-bursty", new: failsafeBursty},
}

// Figures are comparable only if all libraries have the same limit.
func TestLimitersGiveTheBurstAndRefuse(t *testing.T) {
	for _, l := range limiters {
		if l.blocks {
			continue
		}
		want := 3
		if l.noBurst {
			want = 1
		}
		take, got := l.new(time.Hour, 3), 0
		for range 10 {
			if take() {
				got++
			}
		}
		if got != want {
			t.Errorf("%s let %d of 10 calls through, want %d", l.name, got, want)
		}
	}
}

func refLimiter(every time.Duration, burst int64) op {
	l := newGCRA(every, burst)
	return func() bool { return l.allow(nanos()) }
}

func xTimeRate(every time.Duration, burst int64) op {
	return rate.NewLimiter(rate.Every(every), int(burst)).Allow
}

func uberRatelimit(every time.Duration, burst int64) op {
	l := ratelimit.New(1, ratelimit.Per(every), ratelimit.WithSlack(int(burst)))
	return func() bool { return !l.Take().IsZero() }
}

// A fixed window: all tokens return at its end.
func goLimiter(every time.Duration, burst int64) op {
	l := must(memorystore.New(&memorystore.Config{Tokens: uint64(burst), Interval: every * time.Duration(burst)}))
	return func() bool {
		_, _, _, ok, err := l.Take(context.Background(), "key")
		return ok && err == nil
	}
}

func throttledGCRA(every time.Duration, burst int64) op {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(1, every), MaxBurst: int(burst - 1)}
	l := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), quota))
	l.SetMaxCASAttemptsLimit(1 << 20) // by default it fails under contention
	return func() bool {
		limited, _, err := l.RateLimitCtx(context.Background(), "key", 1)
		return !limited && err == nil
	}
}

// One permit per interval, aligned.
func failsafeSmooth(every time.Duration, _ int64) op {
	return ratelimiter.NewSmoothWithMaxRate[any](every).TryAcquirePermit
}

// A fixed window, like go-limiter.
func failsafeBursty(every time.Duration, burst int64) op {
	return ratelimiter.NewBursty[any](uint(burst), every*time.Duration(burst)).TryAcquirePermit
}
