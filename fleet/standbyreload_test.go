package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A quota per day becomes one per hour, or one with a smaller amount. Its standby is not spent from the new
// limit.
func TestWhatStoodByOfADayIsNotSpentInHours(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, next := range []limit.Limit{
		{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 50}, Every: bucket.Hour},
		{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 50}, Every: bucket.Hour, Zone: "Asia/Kathmandu"},
		{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 50}, Every: bucket.Day},
	} {
		for _, asks := range []int{10, 0} { // between the change and the outage
			synctest.Test(t, func(t *testing.T) { staysInItsDay(t, next, asks) })
		}
	}
}

func staysInItsDay(t *testing.T, next limit.Limit, asks int) {
	l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 10_000}, Every: bucket.Day}
	s := &faulty{Store: NewMemory(nil)}
	_, regs := fleetOf(t, 1, s, l, Options{})
	take := func(n int) (went int) {
		for range n {
			if ok, _, _ := goOne(context.Background(), clock.System.Now()+50*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); ok {
				went++
			}
			time.Sleep(100 * time.Millisecond)
		}
		return went
	}
	begin := take(500)
	setAt(t, regs[0], clock.System.Now(), next)
	begin += take(asks)
	s.down.Store(true)
	first := take(20)
	time.Sleep(time.Hour)
	if later := take(600); later > 50 || next.Every == bucket.Day && later+first > 0 {
		t.Errorf("%v: %d went of a day, then %d, and an hour later %d", &next, begin, first, later)
	}
	s.down.Store(false)
	time.Sleep(10 * time.Second)
	p := leaseOf(regs[0].Get(clock.System.Now(), ""))
	if later := take(600); next.Every == bucket.Hour && later > 50 {
		t.Errorf("%v: %d went in the hour in which the store was back; %+v", &next, later, p.own.standby)
	}
}

// A quota is raised during a request. The raise applies, and the usage stays the same.
func TestAQuotaIsRaisedWhileTheStoreIsAsked(t *testing.T) {
	for _, to := range []int64{2000, 500} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
			hold := make(chan struct{})
			s := &losing{Store: NewMemory(nil)}
			h := &holding{Store: s, hold: hold}
			_, regs := fleetOf(t, 1, h, l, Options{Timeout: 5 * time.Second})
			time.Sleep(2 * time.Second)
			went := 0
			take := func() {
				if ok, _, _ := goOne(context.Background(), clock.System.Now()+50*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); ok {
					went++
				}
				time.Sleep(100 * time.Millisecond)
			}
			for range 10 {
				take()
			}
			h.on.Store(true)
			done := make(chan bool)
			go func() {
				ok, _, _ := goOne(context.Background(), clock.System.Now()+50*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1000})
				done <- ok
			}()
			time.Sleep(30 * time.Millisecond)
			l.Amount = to
			setAt(t, regs[0], clock.System.Now(), l)
			h.on.Store(false)
			close(hold)
			if <-done {
				went += 1000
			}
			for range 3000 {
				take()
			}
			if want := int(to); went < want*98/100 || went > want {
				t.Errorf("%d went of a quota that was raised from 1000 to %d", went, to)
			}
		})
	}
}

// holding is a store that delays its responses for a while.
type holding struct {
	Store
	on   atomic.Bool
	hold chan struct{}
}

func (s *holding) Take(ctx context.Context, a *Ask) error {
	on := s.on.Load() && len(a.Claims) > 0
	err := s.Store.Take(ctx, a)
	if on {
		<-s.hold
	}
	return err
}
