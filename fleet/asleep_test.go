package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// sleepy is the clock of a machine that can be suspended. It does not advance meanwhile.
type sleepy struct {
	clock.Clock
	asleep atomic.Int64
}

func (c *sleepy) Asleep() time.Duration { return time.Duration(c.asleep.Load()) }

// TestSuspendedProcessDoesNotUseExpiredPart suspends a machine without contact to the store for longer than the
// store reserves its part. Its monotonic clock does not advance meanwhile, but another process has the part
// when it wakes.
func TestSuspendedProcessDoesNotUseExpiredPart(t *testing.T) {
	for _, nap := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := &sleepy{Clock: clock.System}
			s := &faulty{Store: NewMemory(nil)}
			_, regs := fleetOf(t, 1, s, rate(100, 100, sec), Options{Clock: c, Outage: time.Minute, Without: Without{Refuse: true}})
			charge := limit.Charge{Registry: regs[0], Key: "", Cost: 1}
			goes := func() bool {
				time.Sleep(sec / 2) // tokens of the part accrue
				now := c.Now()
				ok, _, err := goOne(context.Background(), now+sec, charge)
				if err != nil {
					t.Error(err)
				}
				return ok
			}
			for range 20 {
				if !goes() {
					t.Fatal("refused while the store answers")
				}
			}
			s.down.Store(true)
			time.Sleep(5 * time.Second)
			if !goes() {
				t.Error("refused while the part lasts")
			}
			c.asleep.Add(int64(nap))
			if got, want := goes(), nap == 0; got != want {
				t.Errorf("after %v of sleep: goes %v, want %v", nap, got, want)
			}
			s.down.Store(false)
		})
	}
}
