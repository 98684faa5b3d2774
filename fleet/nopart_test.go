package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestAShareOfWhoHoldsNoPart checks that a process without a part uses its configured share as soon as it is
// cut off. It has no other units until the end of the outage.
func TestAShareOfWhoHoldsNoPart(t *testing.T) {
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "l", Shape: shape, Rate: bucket.Rate{Amount: 100, Per: time.Second}}
			s := &faulty{Store: NewMemory(nil)}
			_, regs := fleetOf(t, 1, s, l, Options{Freezes: true, Without: Without{Share: 0.1}})
			c := limit.Charge{Registry: regs[0], Key: "", Cost: 1}
			use := func(d time.Duration) (n int) {
				for range d / (10 * time.Millisecond) {
					n += drainNow(c)
					time.Sleep(10 * time.Millisecond)
				}
				return n
			}
			use(10 * time.Second)
			s.down.Store(true)
			use(2 * time.Second)
			if n := use(20 * time.Second); n < 180 || n > 210 {
				t.Errorf("%v: %d went in 20 s, want the share of 10 a second", shape, n)
			}
			s.down.Store(false)
		})
	}
}
