package bench

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v7"
	"github.com/eapache/go-resiliency/breaker"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"
)

func refDo() op {
	c := newCoordinator()
	return func() bool {
		_, err := c.do(answer)
		return err == nil
	}
}

func failsafeDo() op {
	again := retrypolicy.NewBuilder[int]().WithMaxRetries(3).WithBackoff(time.Millisecond, time.Second).Build()
	limit := ratelimiter.NewBursty[int](1<<50, time.Hour)
	call := failsafe.With(again, failsafeWindow(), limit).WithContext(context.Background())
	return func() bool {
		_, err := call.Get(answer)
		return err == nil
	}
}

func cenkaltiDo() op {
	ctx := context.Background()
	cb := gobreaker.NewCircuitBreaker[int](windowed)
	limit := rate.NewLimiter(1e9, 1<<40)
	limited := func() (int, error) {
		if err := limit.Wait(ctx); err != nil {
			return 0, err
		}
		return answer()
	}
	attempt := func() (int, error) { return cb.Execute(limited) }
	return func() bool {
		_, err := backoff.Retry(ctx, attempt, backoff.WithMaxTries(3))
		return err == nil
	}
}

func eapacheDo() op {
	ctx := context.Background()
	again := retrier.New(retrier.ExponentialBackoff(3, time.Millisecond), nil)
	cb := breaker.New(5, 1, 10*time.Second)
	limit := rate.NewLimiter(1e9, 1<<40)
	limited := func() error {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		_, err := answer()
		return err
	}
	attempt := func(context.Context) error { return cb.Run(limited) }
	return func() bool { return again.RunCtx(ctx, attempt) == nil }
}

func refDelay() op {
	return func() bool { return fullJitter(3, 100*time.Millisecond, 20*time.Second) >= 0 }
}

func cenkaltiDelay() op {
	next := backoff.NewExponentialBackOff()
	return func() bool { return next.NextBackOff() > 0 }
}
