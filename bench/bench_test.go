package bench

import (
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/seed1158cd35/weir/clock"
)

// The cost of a clock read on this machine, to compare the other figures with.
func BenchmarkClock(b *testing.B) {
	run(b,
		row{"ref", func() op { return func() bool { return nanos() > 0 } }},
		row{"time.Now", func() op { return func() bool { return !time.Now().IsZero() } }},
		row{"weir", func() op { return func() bool { return clock.System.Now() > 0 } }},
	)
}

// A call that the limit admits.
func BenchmarkAllow(b *testing.B) {
	for _, l := range limiters {
		run(b, row{l.name, func() op { return l.new(time.Nanosecond, 1<<40) }})
	}
}

// A call that the limit refuses: the hot path while throttled.
func BenchmarkDeny(b *testing.B) {
	for _, l := range limiters {
		if !l.blocks {
			run(b, row{l.name, func() op { return refuses(l.new(time.Hour, 1)) }})
		}
	}
}

// A closed breaker admits a call and receives its success.
func BenchmarkBreakerSuccess(b *testing.B) {
	run(b,
		row{"ref", refBreaker},
		row{"weir", weirBreaker},
		row{"gobreaker", func() op { return gobreakerExecute(gobreaker.Settings{}) }},
		row{"gobreaker-window", func() op { return gobreakerExecute(windowed) }},
		row{"failsafe-count", func() op { return failsafeBreaker(failsafeCount()) }},
		row{"failsafe-window", func() op { return failsafeBreaker(failsafeWindow()) }},
		row{"eapache", eapacheBreaker},
	)
}

// A decision by breaker and limit, and the report of a success.
func BenchmarkDecision(b *testing.B) {
	run(b,
		row{"ref", refDecision},
		row{"weir", weirDecision},
		row{"weir+in-flight", weirInFlight},
		row{"gobreaker+x/time/rate", gobreakerDecision},
		row{"failsafe", failsafeDecision},
	)
}

// A complete call that succeeds immediately: retry around breaker around limit.
func BenchmarkDo(b *testing.B) {
	run(b,
		row{"ref", refDo},
		row{"weir", weirDo},
		row{"failsafe", failsafeDo},
		row{"cenkalti+gobreaker+x/time/rate", cenkaltiDo},
		row{"eapache+x/time/rate", eapacheDo},
	)
}

// The wait before the next attempt. The state of cenkalti is for one caller, so it runs with one goroutine only.
func BenchmarkDelay(b *testing.B) {
	run(b, row{"ref", refDelay}, row{"weir", weirDelay})
	b.Run("cenkalti/g=1", func(b *testing.B) { alone(b, cenkaltiDelay()) })
}

// Units that 64 goroutines get from a limit of 100,000 a second with a burst of 100 in 2 s, as a share of the permitted units.
// Above 1, the limiter violates the limit.
func BenchmarkAdmission(b *testing.B) {
	const every, burst = 10 * time.Microsecond, 100
	for _, l := range limiters {
		b.Run(l.name+"/g=64", func(b *testing.B) {
			for b.Loop() {
				admitted, elapsed := spin(l.new(every, burst), 2*time.Second)
				b.ReportMetric(float64(admitted)/(burst+float64(elapsed)/float64(every)), "admitted/budget")
			}
		})
	}
}
