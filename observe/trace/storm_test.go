package trace

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Of 20,000 failures a second, by the defaults: none is lost while the receiver takes them. While it is away those of the first
// two seconds are kept, then 100 a second, within the bound of memory; what was dropped is counted, and what was kept arrives.
func TestStormOfFailures(t *testing.T) {
	const each, seconds = 20_000, 6
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tracer, to, u := traced(t, Options{}, weir.Policy{Retry: retry.Config{Attempts: 1}, Breaker: breaker.Config{Off: true}})
			to.answer = func() error {
				if away {
					return &LaterError{Err: errors.New("away")}
				}
				to.spans = to.spans[:0] // what was taken is counted by the tracer
				return nil
			}
			before := heap()
			var dropped [seconds]int64
			for second := range seconds {
				for i := range each {
					_ = do(t.Context(), u, weir.Call{ID: "1z4qeq0q5rsr7"}, fails(outcome.Failed))
					if i%100 == 99 {
						time.Sleep(time.Second / each * 100)
					}
				}
				dropped[second] = tracer.Stats().Dropped[Full]
			}
			s, held := tracer.Stats(), heap()-before
			t.Logf("away %v: dropped until each second %v, %.1f MiB wait, %.1f MiB in all", away, dropped, float64(s.Waiting)/(1<<20), float64(held)/(1<<20))
			if s.Kept[Failed] != each*seconds || s.Waiting > defaultBytes {
				t.Errorf("%d were kept, and %d bytes wait", s.Kept[Failed], s.Waiting)
			}
			if away && (dropped[1] > 0 || dropped[5]-dropped[4] > each-spareASecond || dropped[5]-dropped[4] < each-2*spareASecond || held > defaultBytes/8*9) { // what waits, and the tracer itself
				t.Errorf("away: dropped until each second %v, %d bytes held", dropped, held)
			}
			to.mu.Lock()
			away = false
			to.mu.Unlock()
			time.Sleep(2 * time.Minute)
			tracer.Close(t.Context())
			if s = tracer.Stats(); s.Spans != 2*(each*seconds-dropped[seconds-1]) || s.Dropped[Full] != dropped[seconds-1] || s.Waiting != 0 || dropped[1] != 0 {
				t.Errorf("at last %+v", s)
			}
		})
	}
}
