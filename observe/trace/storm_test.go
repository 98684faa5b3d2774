package trace

import (
	"cmp"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// 20,000 failing requests a second, with the defaults. All are kept while the receiver accepts them. During an outage, more than
// the first five seconds are kept. Once the memory is used up, 100 a second are kept. Dropped traces are counted, and kept traces
// arrive.
func TestStormOfFailures(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	const each, seconds = 20_000, 6
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, c := range []struct {
		name  string
		away  bool
		bytes int64 // 0 means the default
		full  bool
	}{
		{"taken", false, 0, false},
		{"away", true, 0, false},
		{"away, with a quarter of the memory", true, defaultBytes / 4, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			away, bound := c.away, cmp.Or(c.bytes, defaultBytes)
			tracer, to, u := traced(t, Options{Bytes: c.bytes}, weir.Policy{Retry: retry.Config{Attempts: 1}, Breaker: breaker.Config{Off: true}})
			to.answer = func() error {
				if away {
					return &LaterError{Err: errors.New("away")}
				}
				to.spans = to.spans[:0] // the tracer counts the accepted spans
				return nil
			}
			caller := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
			before, dropped := heap(), [seconds]int64{}
			for second := range seconds {
				for i := range each {
					r := tracer.Begin(readParent(caller, false), About{Kind: Server, Name: "POST api", Method: "POST", Route: "/orders/"})
					_ = do(t.Context(), u, weir.Call{ID: "1z4qeq0q5rsr7", Note: r}, fails(outcome.Failed))
					r.End(Answer{Status: 502})
					if i%100 == 99 {
						time.Sleep(time.Second / each * 100)
					}
				}
				dropped[second] = tracer.Stats().Dropped[Full]
			}
			s, held := tracer.Stats(), heap()-before
			t.Logf("%s: dropped until each second %v, %.1f MiB wait, %.1f MiB in all", c.name, dropped, float64(s.Waiting)/(1<<20), float64(held)/(1<<20))
			if s.Kept[Failed] != each*seconds || s.Waiting > bound || held > bound/8*9 { // waiting traces, and the tracer itself
				t.Errorf("%s: %d were kept, %d bytes wait, %d are held", c.name, s.Kept[Failed], s.Waiting, held)
			}
			if lost := dropped[5] - dropped[4]; c.full != (dropped[5] > 0) || c.full && (dropped[1] > 0 || lost > each-spareASecond || lost < each-2*spareASecond) {
				t.Errorf("%s: dropped until each second %v", c.name, dropped)
			}
			to.mu.Lock()
			away = false
			to.mu.Unlock()
			time.Sleep(2 * time.Minute)
			tracer.Close(t.Context())
			if s = tracer.Stats(); s.Spans != 2*(each*seconds-dropped[seconds-1]) || s.Dropped[Full] != dropped[seconds-1] || s.Waiting != 0 {
				t.Errorf("%s: at last %+v", c.name, s)
			}
		})
	}
}
