package bench

import (
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/seed1158cd35/weir/clock"
)

// What a clock read costs here: the unit in which the rest should be read.
func BenchmarkClock(b *testing.B) {
	run(b,
		row{"ref", func() op { return func() bool { return nanos() > 0 } }},
		row{"time.Now", func() op { return func() bool { return !time.Now().IsZero() } }},
		row{"weir", func() op { return func() bool { return clock.System.Now() > 0 } }},
	)
}

// A call that the limit lets through.
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

// A closed breaker lets a call through and hears that it went well.
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

// Breaker and limit are asked, and the breaker hears of a success.
func BenchmarkDecision(b *testing.B) {
	run(b,
		row{"ref", refDecision},
		row{"weir", weirDecision},
		row{"weir+in-flight", weirInFlight},
		row{"gobreaker+x/time/rate", gobreakerDecision},
		row{"failsafe", failsafeDecision},
	)
}

// A whole call that succeeds at once: retry around breaker around limit.
func BenchmarkDo(b *testing.B) {
	run(b,
		row{"ref", refDo},
		row{"weir", weirDo},
		row{"failsafe", failsafeDo},
		row{"cenkalti+gobreaker+x/time/rate", cenkaltiDo},
		row{"eapache+x/time/rate", eapacheDo},
	)
}

// The wait before the next attempt. What cenkalti keeps is for one caller, so
// each goroutine would need its own; it is measured alone.
func BenchmarkDelay(b *testing.B) {
	run(b, row{"ref", refDelay}, row{"weir", weirDelay})
	b.Run("cenkalti/g=1", func(b *testing.B) { alone(b, cenkaltiDelay()) })
}

// What 64 goroutines get out of a limit of 100,000 a second with a burst of 100
// in 2 s of trying, as a share of what it allows. Above 1, the limit is broken.
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
