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

// deaf is a store that is unavailable, and then accepts heartbeats but no debts.
type deaf struct {
	faulty
	debts atomic.Bool
	owed  atomic.Int64 // reported debts
}

func (s *deaf) Take(ctx context.Context, a *Ask) error {
	owes := len(a.Claims) == 0 && len(a.Settle) > 0 && a.Settle[0].Owe > 0
	if owes && s.debts.Load() {
		return errDown
	}
	err := s.faulty.Take(ctx, a)
	if owes && err == nil {
		s.owed.Add(a.Settle[0].Owe)
	}
	return err
}

// Debts are reported by the limit in force. If they were reported by the shorter window from before a reload,
// the store would drop units that still count in the longer one.
func TestADebtIsToldByTheLimitInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rollingLimit(200, 10*sec)
		s := &deaf{faulty: faulty{Store: NewMemory(nil)}}
		fleets, regs := fleetOf(t, 1, s, l, Options{Without: Without{}})
		until := func(d time.Duration) { // calls for the duration d
			for end := clock.System.Now() + d; clock.System.Now() < end; {
				goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: 1})
				time.Sleep(200 * time.Millisecond)
			}
		}
		until(20 * sec)
		before := fleets[0].spent.Load()
		s.down.Store(true)
		until(8 * sec)
		own := fleets[0].spent.Load() - before
		if own == 0 {
			t.Fatal("nothing was spent without the store")
		}
		s.debts.Store(true)
		s.down.Store(false)
		time.Sleep(3 * sec)
		l.Per = 60 * sec
		if err := regs[0].Set(clock.System.Now(), l); err != nil {
			t.Fatal(err)
		}
		// Another process reads the limit with the longer window, so that the store knows it.
		_, others := fleetOf(t, 1, s, l, Options{})
		goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: others[0], Key: "", Cost: 1})
		m := s.Store.(*Memory)
		count := func() int64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.groups["up"].cells[cellKey{"l", ""}].Count
		}
		counted := count()
		s.debts.Store(false)
		time.Sleep(9 * sec) // all earlier units have left the shorter window
		if n := count(); counted == 0 || s.owed.Load() != own || n < counted+own {
			t.Errorf("%d count after %d and %d more that are owed, of which %d were told", n, counted, own, s.owed.Load())
		}
	})
}
