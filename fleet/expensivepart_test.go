package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestExpensiveCallsTakeNoPartsOfOthers has processes make calls of cost 1 and, rarely, of more than half of
// the burst. During an outage each process serves small calls, and refuses a large one because its part is too
// small.
func TestExpensiveCallsTakeNoPartsOfOthers(t *testing.T) {
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "l", Unit: "tokens", Shape: shape, Rate: bucket.Rate{Amount: 300_000, Per: time.Minute, Burst: 5000}}
			cost := int64(3000)
			if shape == limit.Rolling {
				l.Burst, cost = 0, 180_000
			}
			s := &faulty{Store: nearby()}
			_, regs := fleetOf(t, 4, s, l, Options{})
			calls := func(d time.Duration) (small [4]int, large int, last limit.Verdict) {
				for end := clock.System.Now() + d; clock.System.Now() < end; time.Sleep(20 * time.Millisecond) {
					for i, r := range regs {
						for range 10 {
							ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Key: "", Cost: 1})
							if ok {
								small[i]++
							}
						}
						if clock.System.Now()/time.Second%4 == time.Duration(i) {
							ok, v, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Key: "", Cost: cost})
							if ok {
								large++
							} else {
								last = v
							}
						}
					}
				}
				return small, large, last
			}
			calls(90 * time.Second) // longer than a window
			s.down.Store(true)
			calls(5 * time.Second)
			small, large, last := calls(4 * time.Second)
			for i, n := range small {
				if n < 1300 { // in 80 runs, at least 1,488: large calls have used up to 60% of the window
					t.Errorf("%v: process %d served %d small calls of 2,000: %v", shape, i, n, small)
				}
			}
			if t.Logf("%v: %v small, %d large, %+v", shape, small, large, last); large == 0 && last.Lack != limit.LacksPart {
				t.Errorf("%v: a large call is refused as it lacks %q, want part_too_small", shape, last.Lack.Word())
			}
			s.down.Store(false)
		})
	}
}
