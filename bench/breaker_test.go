package bench

import (
	"time"

	"github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
)

// windowed makes gobreaker count over the last 10 s, as weir does.
var windowed = gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: time.Second}

func answer() (int, error) { return 1, nil }

func refBreaker() op {
	w := new(window)
	return func() bool {
		closed := !w.open.Load()
		w.success(nanos())
		return closed
	}
}

func gobreakerExecute(s gobreaker.Settings) op {
	cb := gobreaker.NewCircuitBreaker[int](s)
	return func() bool {
		_, err := cb.Execute(answer)
		return err == nil
	}
}

func failsafeCount() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureThreshold(5).Build()
}

func failsafeWindow() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
}

func failsafeBreaker(cb circuitbreaker.CircuitBreaker[int]) op {
	return func() bool {
		ok := cb.TryAcquirePermit()
		cb.RecordSuccess()
		return ok
	}
}

// It counts consecutive errors and does nothing on success. This is the minimum, but it knows no error rate.
func eapacheBreaker() op {
	cb := breaker.New(5, 1, 10*time.Second)
	work := func() error { return nil }
	return func() bool { return cb.Run(work) == nil }
}
