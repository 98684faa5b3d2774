package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// losing is a store that loses the answer to an ask that is picked, after a while.
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

// The answer to an ask for the rest of a day that comes by its repeat, after midnight, says nothing of
// the new day.
func TestAnAnswerOfYesterdayUsesUpNothingOfToday(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Name: "q", Shape: Fixed, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		lost := 0
		s := &losing{Store: NewMemory(nil), wait: func() { lost++; time.Sleep(time.Until(midnight.Add(5 * time.Millisecond))) }}
		_, regs := fleetOf(t, 2, s, l, FleetOptions{})
		time.Sleep(time.Until(midnight.Add(-10 * time.Second)))
		s.pick = func(a *Ask) bool {
			return len(a.Claims) > 0 && a.Copies > 0 && time.Now().After(midnight.Add(-180*time.Millisecond))
		}
		today := 0
		for time.Now().Before(midnight.Add(2 * time.Minute)) {
			for _, r := range regs {
				if ok, _, _ := goOne(context.Background(), clock.System.Now()+5*time.Millisecond, Charge{r, "", 1}); ok && !time.Now().Before(midnight) {
					today++
				}
				if time.Sleep(4 * time.Millisecond); time.Now().After(midnight.Add(5 * time.Second)) {
					time.Sleep(100 * time.Millisecond) // what stands by comes back little by little
				}
			}
		}
		if lost != 1 || today < 995 || today > 1000 {
			t.Errorf("%d of 1000 went today, %d answers lost", today, lost)
		}
	})
}
