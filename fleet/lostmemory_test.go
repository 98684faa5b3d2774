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

// forgetful is a store that for a while does not know the usage of a calendar window, and is then declared new.
// It records the usage that processes report in claims.
type forgetful struct {
	Store
	dark       atomic.Bool
	hangs      atomic.Bool // it does not respond to requests
	seen, back int64
}

func (s *forgetful) Beat(ctx context.Context, b *Beat) (Standing, error) {
	a, err := s.Store.Beat(ctx, b)
	if s.dark.Load() {
		a.Since = a.Now.UnixMicro()
	}
	return a, err
}

func (s *forgetful) Take(ctx context.Context, a *Ask) error {
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	for i := range a.Claims {
		s.seen, s.back = a.Claims[i].Seen, a.Claims[i].SeenBack
	}
	err := s.Store.Take(ctx, a)
	for i := range a.Grants {
		if s.dark.Load() {
			a.Granted, a.Grants[i] = 0, Grant{Cold: true, Reset: a.Grants[i].Reset, Wait: a.Grants[i].Reset}
		}
	}
	return err
}

// A store that has lost its data grants no units of a quota. A process must not take that as usage: when the
// store is declared new, the process continues with the usage that it knew before.
func TestAStoreThatKnowsNothingOfAQuotaHasNotSeenItUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Store: NewMemory(nil)}
		l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Day}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1})
		take := func() bool {
			ok, _, err := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		for range 3 {
			if !take() {
				t.Fatal("a new quota is not there")
			}
		}
		s.dark.Store(true)
		for range 3 {
			time.Sleep(2 * time.Second)
			take()
		}
		s.dark.Store(false)
		if time.Sleep(2 * time.Second); s.seen < 3 || s.seen > 10 {
			t.Errorf("the process says that it has seen %d go, less %d, want what it saw before", s.seen, s.back)
		}
		if !take() {
			t.Error("refused by a store that was told that it is new")
		}
	})
}

// A store without data predicts a wait. After it is declared new, no call gets that prediction, not even one
// whose request is not answered in time.
func TestNobodyIsToldOfAWaitThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Store: NewMemory(nil)}
		s.dark.Store(true)
		l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Month}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1})
		wait := func() time.Duration {
			ok, v, err := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Cost: 1})
			if err != nil || ok {
				t.Errorf("%+v, %v", v, err)
			}
			return v.Wait
		}
		time.Sleep(5 * time.Second)
		if got := wait(); got < 24*time.Hour {
			t.Errorf("a store that knows nothing has a call wait for %v", got)
		}
		s.dark.Store(false)
		time.Sleep(5 * time.Second)
		s.hangs.Store(true)
		if got := wait(); got > time.Minute {
			t.Errorf("told to wait for %v though the store has said since that it is new", got)
		}
		s.hangs.Store(false)
	})
}

// A call that read the clock just before the next request became due immediately is not refused because of that
// request.
func TestACallThatIsOlderThanTheNewsIsServed(t *testing.T) {
	for name, news := range map[string]func(*Group, *queue){
		"the store knows the limits":   func(g *Group, _ *queue) { g.kick(true) },
		"the store is heard again":     func(g *Group, _ *queue) { g.kick(false) },
		"all that was there was taken": func(_ *Group, q *queue) { q.tookAll(clock.System.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Month}
				fleets, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Lease: -1})
				serve := func(now time.Duration) {
					t.Helper()
					var p limit.Charges
					p.Add(limit.Charge{Registry: regs[0], Cost: 1})
					if v, err := p.Fetch(t.Context(), now, now, limit.Normal); err != nil || !v.OK {
						t.Errorf("%+v, %v; want it served", v, err)
					}
				}
				g := fleets[0].Group("up")
				var q *queue
				for q == nil { // a queue without waiting calls may be dropped at any time
					serve(clock.System.Now())
					for _, q = range g.waiting() {
					}
				}
				began := clock.System.Now()
				time.Sleep(time.Microsecond)
				q.mu.Lock()
				q.fails = 1
				q.mu.Unlock()
				news(g, q)
				q.mu.Lock()
				q.fails = 0
				q.mu.Unlock()
				serve(began)
			})
		})
	}
}
