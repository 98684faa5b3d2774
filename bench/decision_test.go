package bench

import (
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"
)

func refDecision() op {
	c := newCoordinator()
	return func() bool {
		ok := c.admit()
		c.report()
		return ok
	}
}

func gobreakerDecision() op {
	cb := gobreaker.NewTwoStepCircuitBreaker[int](windowed)
	limit := rate.NewLimiter(1e9, 1<<40)
	return func() bool {
		if !limit.Allow() {
			return false
		}
		done, err := cb.Allow()
		if err != nil {
			return false
		}
		done(nil)
		return true
	}
}

func failsafeDecision() op {
	cb := failsafeWindow()
	limit := ratelimiter.NewBursty[int](1<<50, time.Hour)
	return func() bool {
		if !cb.TryAcquirePermit() || !limit.TryAcquirePermit() {
			return false
		}
		cb.RecordSuccess()
		return true
	}
}
