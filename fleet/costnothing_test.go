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

// A limit that costs a call no units does not delay it, be it local or shared.
func TestAPausedLimitDoesNotHoldWhatItCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := limit.Limit{Name: "tokens", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		calls := limit.Limit{Name: "calls", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		f, regs := groupOf(t, NewMemory(nil), Options{}, tokens, calls)
		defer func() { _ = f.Close(context.Background()) }()
		now := clock.System.Now()
		m := regs[0].Get(now, "")
		m.Pause(now, now+time.Minute)
		if wait := m.Ask(now, 0); wait != 0 {
			t.Errorf("asked for nothing: %v, want 0", wait)
		}
		if ok, v, err := goOne(context.Background(), now+time.Second, limit.Charge{Registry: regs[0]}); !ok {
			t.Errorf("a call that costs nothing was held: %+v %v", v, err)
		}
		both := []limit.Charge{{Registry: regs[0]}, {Registry: regs[1], Cost: 1}}
		if ok, v, err := goOne(context.Background(), now+time.Second, both...); !ok {
			t.Errorf("a call that costs something of another limit was held: %+v %v", v, err)
		}
		if ok, _, _ := goOne(context.Background(), now+time.Second, limit.Charge{Registry: regs[0], Cost: 1}); ok {
			t.Error("a call that costs a unit of the paused limit went")
		}
	})
}
