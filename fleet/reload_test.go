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

// drainNow takes units without waiting until it is refused.
func drainNow(cs ...limit.Charge) (n int) {
	for {
		ok, _, _ := goOne(context.Background(), clock.System.Now(), cs...)
		if !ok {
			return n
		}
		n++
	}
}

// TestReloadsGiveNothingTwice checks that changes of a limit during an outage do not grant units twice.
func TestReloadsGiveNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, l, Options{})
		for range 100 { // with demand, the process gets a part
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		t.Log("at once:", drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1}))
		total := 0
		for i := range 5 {
			m := l
			m.Rate.Amount, m.Rate.Burst = 100-int64(i)-1, 100-int64(i)-1 // never more than before
			if err := regs[0].Set(clock.System.Now(), m); err != nil {
				t.Fatal(err)
			}
			n := drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			t.Log("after reload", i, "at the same instant:", n)
			total += n
		}
		if total > 0 {
			t.Errorf("%d more went at the same instant", total)
		}
		s.down.Store(false)
	})
}
