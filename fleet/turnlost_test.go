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

// losing is a store that delays and loses the response to one selected request.
type losing struct {
	Store
	pick func(*Ask) bool
	wait func()
}

func (s *losing) Take(ctx context.Context, a *Ask) error {
	lost := s.pick != nil && s.pick(a)
	if lost {
		s.pick = nil
	}
	err := s.Store.Take(ctx, a)
	if lost {
		if s.wait != nil {
			s.wait()
		}
		return errDown
	}
	return err
}

// A repeat after midnight gets the response to a request for the rest of the previous day. That does not reduce
// the units of the new day.
func TestAnAnswerOfYesterdayUsesUpNothingOfToday(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evening()
		l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		lost := 0
		s := &losing{Store: NewMemory(nil), wait: func() { lost++; time.Sleep(time.Until(midnight.Add(5 * time.Millisecond))) }}
		_, regs := fleetOf(t, 1, s, l, Options{})
		time.Sleep(3 * time.Second)
		spend := func(n int) (went int) {
			for range n {
				if ok, _, _ := goOne(context.Background(), clock.System.Now()+5*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); ok {
					went++
				}
				time.Sleep(10 * time.Millisecond)
			}
			return went
		}
		yesterday := spend(1000)
		for range 300 { // the standby returns in steps
			yesterday += spend(1)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Until(midnight.Add(-150 * time.Millisecond)))
		s.pick = func(a *Ask) bool { return len(a.Claims) > 0 && a.Copies > 0 }
		spend(1)
		time.Sleep(time.Until(midnight.Add(10 * time.Millisecond)))
		today := spend(1100)
		for range 300 {
			today += spend(1)
			time.Sleep(time.Second)
		}
		if lost != 1 || yesterday != 1000 || today != 1000 {
			t.Errorf("%d of 1000 went yesterday and %d today, %d answers lost", yesterday, today, lost)
		}
	})
}

// Lost responses do not reduce the standby: a repeat gets the same grant.
func TestALostAnswerLosesNothingThatStandsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 10_000}, Every: bucket.Day}
		m := NewMemory(nil)
		s := &losing{Store: m}
		_, regs := fleetOf(t, 1, s, l, Options{})
		used := int64(0)
		spend := func(n int) {
			for range n {
				if ok, _, _ := goOne(context.Background(), clock.System.Now()+50*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); ok {
					used++
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		spend(300)
		for range 10 {
			s.pick = func(a *Ask) bool { return len(a.Claims) > 0 && a.Claims[0].Extra > 0 }
			spend(100)
		}
		p := leaseOf(regs[0].Get(clock.System.Now(), ""))
		left := l.Amount - m.groups["up"].cells[cellKey{"q", ""}].Count
		if lost := l.Amount - used - left - p.own.standby.left - p.own.standby.loose - p.held(clock.System.Now()); used != 1300 || lost > 50 {
			t.Errorf("%d of %d used, and %d lost", used, l.Amount, lost)
		}
	})
}
