package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// faulty is a store that can be taken away.
type faulty struct {
	Store
	down    atomic.Bool
	dropped atomic.Int32 // answers still to be lost
}

var errDown = errors.New("the store is down")

func (s *faulty) Take(ctx context.Context, a *Ask) error {
	if s.down.Load() {
		return errDown
	}
	err := s.Store.Take(ctx, a)
	if err == nil && s.dropped.Add(-1) >= 0 {
		return errDown
	}
	return err
}

func (s *faulty) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if s.down.Load() {
		return Standing{}, errDown
	}
	return s.Store.Beat(ctx, b)
}

// news hears of the fallback.
type news struct {
	mu  sync.Mutex
	all []FallbackEvent
	at  []time.Duration
}

func (n *news) hear(e FallbackEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all, n.at = append(n.all, e), append(n.at, clock.System.Now())
}

func TestAFleetGoesOnAtItsLastRateWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		s := &faulty{Store: NewMemory(nil)}
		var heard news
		_, regs := fleetOf(t, 4, s, l, FleetOptions{Events: FleetEvents{Fallback: heard.hear}})
		begin := clock.System.Now()
		var went [12]atomic.Int64
		var slowest atomic.Int64
		var wg sync.WaitGroup
		for _, r := range regs {
			wg.Go(func() {
				for n := range 240 { // 20 a second each, 80 of the 100
					time.Sleep(begin + time.Duration(n)*50*time.Millisecond - clock.System.Now())
					before := clock.System.Now()
					ok, _, err := goOne(context.Background(), before+50*time.Millisecond, Charge{r, "", 1})
					if err != nil {
						t.Error(err)
					}
					slowest.Store(max(slowest.Load(), int64(clock.System.Now()-before)))
					if ok {
						went[min(11, (before-begin)/time.Second)].Add(1)
					}
				}
			})
		}
		time.Sleep(4 * time.Second)
		s.down.Store(true)
		time.Sleep(4 * time.Second)
		s.down.Store(false)
		back := clock.System.Now()
		wg.Wait()
		for i := range went {
			if n := went[i].Load(); n < 70 || n > 101 {
				t.Errorf("second %d: %d went, want about 80", i, n)
			}
		}
		if len(heard.all) != 8 {
			t.Fatalf("heard %d events, want away and back from each: %+v", len(heard.all), heard.all)
		}
		for i, e := range heard.all {
			switch {
			case e.Away && !errors.Is(e.Err, errDown):
				t.Errorf("went away for %v", e.Err)
			case !e.Away && heard.at[i] > back+100*time.Millisecond:
				t.Errorf("resumed %v after the store was back", heard.at[i]-back)
			case !e.Away && (e.Spent < 60 || e.Spent > 90):
				t.Errorf("spent %d alone, want about 80", e.Spent)
			}
		}
	})
}

func TestAloneAProcessComesDownToItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 4, s, l, FleetOptions{})
		time.Sleep(11 * time.Second) // all know of all
		r := regs[0]
		end := clock.System.Now() + 2*time.Second
		for clock.System.Now() < end { // all that there is
			if ok, _, _ := goOne(context.Background(), end, Charge{r, "", 1}); !ok {
				time.Sleep(time.Millisecond)
			}
		}
		s.down.Store(true)
		count := func(d time.Duration) (n int) {
			end := clock.System.Now() + d
			for clock.System.Now() < end {
				if ok, _, _ := goOne(context.Background(), end, Charge{r, "", 1}); ok {
					n++
				} else {
					time.Sleep(time.Millisecond)
				}
			}
			return n
		}
		if n := count(30 * time.Second); n < 80*30 || n > 101*30+25 {
			t.Errorf("%d went in 30s, want its last rate of about 100/s", n)
		}
		count(32 * time.Second)
		if n := count(20 * time.Second); n < 24*20 || n > 26*20 {
			t.Errorf("%d went in 20s after a minute, want its share of 25/s", n)
		}
		s.down.Store(false)
	})
}

func TestALostAnswerIsNotSpentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, l, FleetOptions{Lease: -1})
		n := 0
		for range 200 {
			s.dropped.Store(1)
			if ok, _, _ := goOne(context.Background(), clock.System.Now(), Charge{regs[0], "", 1}); ok {
				n++
			}
		}
		if n < 99 || n > 100 { // a little is held back for the guard
			t.Errorf("%d of 100 went although each answer was lost once", n)
		}
	})
}
