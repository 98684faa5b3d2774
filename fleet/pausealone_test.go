package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// counting counts how often the clock is read.
type counting struct {
	clock.Clock
	n atomic.Int64
}

func (c *counting) Now() time.Duration { c.n.Add(1); return c.Clock.Now() }

// TestPauseWhileTheStoreIsAway checks that a call that waits for the end of a pause during an outage sleeps.
func TestPauseWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		c := &counting{Clock: clock.System}
		f, regs := groupOf(t, s, Options{Clock: c}, l)
		for range 100 {
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		base := c.n.Load()
		time.Sleep(3 * time.Second)
		base = c.n.Load() - base
		drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		m := regs[0].Get(clock.System.Now(), "")
		time.AfterFunc(5*time.Millisecond, func() { m.Pause(clock.System.Now(), clock.System.Now()+3*time.Second) })
		before := c.n.Load()
		begin := clock.System.Now()
		for range 3 {
			go goOne(context.Background(), begin+5*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		}
		time.Sleep(3 * time.Second)
		if n := c.n.Load() - before; n > 500 {
			t.Errorf("looked at the clock %d times in 3s of a pause; %d in 3 s without calls", n, base)
		}
		s.down.Store(false)
		time.Sleep(3 * time.Second)
		_ = f.Close(context.Background())
	})
}

// TestPauseLiftedWhileTheStoreIsAway checks that a call that waits for the end of a pause during an outage
// continues soon after the pause is lifted.
func TestPauseLiftedWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		f, regs := groupOf(t, s, Options{}, l)
		for range 100 {
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		m := regs[0].Get(clock.System.Now(), "")
		time.AfterFunc(5*time.Millisecond, func() { m.Pause(clock.System.Now(), clock.System.Now()+3*time.Second) })
		time.AfterFunc(time.Second, func() { m.Resume(clock.System.Now()) })
		begin := clock.System.Now()
		ok, v, err := goOne(context.Background(), begin+5*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		if took := clock.System.Now() - begin; !ok || took > 1100*time.Millisecond {
			t.Errorf("served %v %+v %v after %v, want a second", ok, v, err, took)
		}
		s.down.Store(false)
		time.Sleep(3 * time.Second)
		_ = f.Close(context.Background())
	})
}
