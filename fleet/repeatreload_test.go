package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// A request that gets no response is repeated by the limit in force. By the shorter window from before a reload,
// the store would drop units that still count in the longer one.
func TestRepeatAfterReloadDropsNoUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rollingLimit(200, 10*sec)
		m := NewMemory(nil)
		s := &faulty{Store: m}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1})
		_, others := fleetOf(t, 1, m, l, Options{Lease: -1})
		call := func(r *limit.Registry) {
			goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Key: "", Cost: 1})
		}
		for range 50 {
			call(others[0])
			time.Sleep(100 * time.Millisecond)
		}
		var p limit.Charges
		p.Add(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		for now := clock.System.Now(); !p.Take(now).OK; {
			if v, err := p.Fetch(context.Background(), now, now, limit.Normal); err != nil || !v.OK {
				t.Fatal(v, err)
			}
		}
		p.Drop(clock.System.Now()) // its unit returns with the next request
		s.down.Store(true)
		call(regs[0])
		time.Sleep(2 * sec)
		l.Per = 60 * sec
		for _, r := range append(regs, others...) {
			if err := r.Set(clock.System.Now(), l); err != nil {
				t.Fatal(err)
			}
		}
		call(others[0])
		time.Sleep(12 * sec) // all units have left the shorter window
		s.down.Store(false)
		time.Sleep(3 * sec)
		m.mu.Lock()
		n := m.groups["up"].cells[cellKey{"l", ""}].Count
		m.mu.Unlock()
		if n < 50 {
			t.Errorf("%d units count, want at least 50", n)
		}
	})
}
