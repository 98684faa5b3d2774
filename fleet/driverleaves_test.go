package fleet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// standsStill is a store whose next requests take as long as trips, or until their context ends. With deadlines
// set, it only observes the deadline of the context.
type standsStill struct {
	Store
	trips     []time.Duration // of the next requests; later ones take 1ms
	deadlines bool
	asked     int
}

func (s *standsStill) Take(ctx context.Context, a *Ask) error {
	s.asked++
	trip := time.Millisecond
	if len(s.trips) > 0 {
		trip, s.trips = s.trips[0], s.trips[1:]
	}
	if s.deadlines {
		at, _ := ctx.Deadline()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.Background(), at)
		defer cancel()
	}
	// The store has executed the request and delays the response.
	err := s.Store.Take(ctx, a)
	if errs := clock.System.Sleep(ctx, trip); errs != nil {
		a.Grants, a.Granted = nil, 0
		return errs
	}
	return err
}

// A caller can leave while its call makes the request for its line. It leaves immediately, or within 20 ms if
// the store only observes deadlines. The request is repeated once, and its units go to the waiting calls.
func TestADriverThatLeavesIsNotKeptByTheStore(t *testing.T) {
	for _, deadlines := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &standsStill{Store: NewMemory(nil), deadlines: deadlines}
			f := New(s, Options{Lease: -1})
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 3}}
			r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
			if err != nil {
				t.Fatal(err)
			}
			if ok, _, err := goOne(context.Background(), 0, limit.Charge{Registry: r, Cost: 1}); !ok || err != nil {
				t.Fatal(ok, err)
			}
			s.trips = []time.Duration{time.Minute}
			begin, left := clock.System.Now(), errors.New("left")
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, err := goOne(ctx, begin+time.Minute, limit.Charge{Registry: r, Cost: 1})
				most := 2 * time.Millisecond
				if deadlines {
					most = soonest
				}
				if took := clock.System.Now() - begin; !errors.Is(err, left) || took > most {
					t.Errorf("deadlines alone %v: the driver left after %v: %v, want after %v", deadlines, took, err, most)
				}
			}()
			synctest.Wait() // the request is sent
			next := make(chan struct{})
			go func() {
				defer close(next)
				ok, _, err := goOne(context.Background(), begin+time.Minute, limit.Charge{Registry: r, Cost: 1})
				if took := clock.System.Now() - begin; err != nil || !ok || took > 2*soonest {
					t.Errorf("deadlines alone %v: the next one went after %v: %v, %v", deadlines, took, ok, err)
				}
			}()
			time.Sleep(2 * time.Millisecond)
			cancel(left)
			<-done
			<-next
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// lateBeat is a store that delays the next heartbeat until it may respond.
type lateBeat struct {
	*standsStill
	next chan chan struct{}
}

func (s *lateBeat) Beat(ctx context.Context, b *Beat) (Standing, error) {
	select {
	case may := <-s.next:
		<-may
	default:
	}
	return s.Store.Beat(ctx, b)
}

// A request that takes longer than its driver waits is no failure of the store. That holds even if a heartbeat
// response meanwhile shows that responses take long. The units that the request returned are not lost.
func TestABeatThatIsLateMakesNoFailureOfAnAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateBeat{&standsStill{Store: NewMemory(nil)}, make(chan chan struct{})}
		f := New(s, Options{Lease: -1})
		l := limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 300}, Every: bucket.Month}
		r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		f.Start()
		time.Sleep(10 * time.Second) // virtual time: response times are known
		p, ok, err := take(t.Context(), r, 300, clock.System.Now())
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		may := make(chan struct{})
		s.next <- may
		time.Sleep(300 * time.Millisecond) // virtual time: the duration of the heartbeat
		s.trips = []time.Duration{time.Minute}
		time.AfterFunc(soonest/2, func() { close(may) })
		p.Settle(clock.System.Now(), map[string]int64{"tokens": 100})
		if _, ok, err := take(t.Context(), r, 200, clock.System.Now()+time.Minute); !ok || err != nil {
			t.Errorf("of 300 taken 200 came back: got them %v, %v", ok, err)
		}
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
