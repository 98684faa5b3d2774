package weir_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Calls that wait for the end of an upstream's pause proceed in order of arrival. This includes calls that waited in
// a queue when it began and calls that come as it ends. They stay within their limits, local and shared.
func TestThoseWhomAPauseHoldsGoInOrder(t *testing.T) {
	most := limit.Limit{Name: "most", Rate: bucket.Rate{Amount: 10, Per: sec, Burst: 5}}
	own := most
	own.Local = true
	second := limit.Limit{Name: "second", Local: true, Rate: bucket.Rate{Amount: 12, Per: sec, Burst: 6}}
	for name, p := range map[string]weir.Policy{
		"own": steady(own), "own in turn": inTurn(own), "own, two": steady(own, second),
		"shared": steady(most), "shared in turn": inTurn(most), "shared beside one of its own": steady(second, most),
	} {
		for _, lifted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, lifted), func(t *testing.T) {
				p.MaxWait = 60 * sec
				synctest.Test(t, func(t *testing.T) {
					f := fleet.New(far{fleet.NewMemory(nil), ms}, fleet.Options{Lease: -1})
					f.Start()
					u := open(t, p, weir.Options{Fleet: f})
					pass(3 * sec)
					begin := clock.System.Now()
					var mu sync.Mutex
					went := make([]time.Duration, 35)
					var wg sync.WaitGroup
					comes := func(i int) {
						wg.Go(func() {
							if _, err := acquire(t.Context(), u, of("a")); err != nil {
								t.Errorf("call %d: %v", i, err)
								return
							}
							mu.Lock()
							went[i] = since(begin)
							mu.Unlock()
						})
						pass(10 * ms)
					}
					for i := range 15 { // five proceed, ten wait
						comes(i)
					}
					if err := u.Pause(pause.All(), 5*sec, false); err != nil {
						t.Fatal(err)
					}
					for i := range 15 {
						comes(15 + i)
					}
					if lifted {
						pass(sec)
						if _, err := u.Resume(pause.All(), false); err != nil {
							t.Fatal(err)
						}
					} else {
						pass(5*sec - since(begin.Truncate(1)) + 150*ms)
					}
					for i := range 5 { // they come behind all others
						comes(30 + i)
					}
					wg.Wait()
					// Calls that ask a store simultaneously because of a local limit have no order among them.
					slack := 0
					if name == "shared beside one of its own" {
						slack = 3
					}
					for i, at := range went {
						before := 0
						for _, later := range went[i:] {
							if later < at {
								before++
							}
						}
						if before > slack {
							t.Errorf("%d went before call %d, at %v", before, i, went)
						}
					}
					slices.Sort(went)
					for i := range went {
						for n, at := range went[i:] {
							if room := 5 + int((at-went[i]+2*ms)/(100*ms)); n+1 > room {
								t.Errorf("%d went from %v to %v, want at most %d", n+1, went[i], at, room)
							}
						}
					}
					if err := f.Close(context.Background()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A call that comes after a pause goes behind the calls that still wait for its end because the machine woke them
// late.
func TestOneThatComesAfterAPauseGoesBehindThoseWhoRest(t *testing.T) {
	for _, of := range []pause.Subject{pause.All(), pause.OfOperation("op"), pause.OfPool("pool"), pause.OfLimits("most")} {
		t.Run(of.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady(scoped(rate("most", 1, sec, 1), "user"))
				p.MaxWait = 60 * sec
				p.Operations = []weir.Operation{{Name: "op"}}
				u := open(t, p, weir.Options{Clock: drowsy{clock.System}})
				if err := u.Pause(of, sec, true); err != nil {
					t.Fatal(err)
				}
				c := weir.Call{Operation: "op", Pool: "pool", Keys: map[string]string{"user": "a"}}
				begin := clock.System.Now()
				var wg sync.WaitGroup
				for i, want := range []time.Duration{sec + 50*ms, 2*sec + 50*ms} {
					wg.Go(func() {
						if _, err := acquire(t.Context(), u, c); err != nil || since(begin) < want || since(begin) > want+100*ms {
							t.Errorf("call %d went after %v: %v, want %v", i, since(begin), err, want)
						}
					})
					pass(sec + 20*ms)
				}
				wg.Wait()
			})
		})
	}
}

// drowsy is a clock that wakes sleepers late.
type drowsy struct{ clock.Clock }

func (d drowsy) Sleep(ctx context.Context, t time.Duration) error { return d.Clock.Sleep(ctx, t+50*ms) }

// A call that asks the store when a pause begins does not use the granted units before the pause ends.
func TestOneThatAsksTheStoreIsHeldByAPause(t *testing.T) {
	for name, p := range map[string]weir.Policy{"": steady(rate("most", 100, sec, 50)), "in turn": inTurn(rate("most", 100, sec, 50))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.MaxWait = 60 * sec
				f := fleet.New(far{fleet.NewMemory(nil), 60 * ms}, fleet.Options{})
				f.Start()
				u := open(t, p, weir.Options{Fleet: f})
				pass(3 * sec)
				begin := clock.System.Now()
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := acquire(t.Context(), u, of("a")); err != nil || since(begin) < 1050*ms || since(begin) > 1300*ms {
						t.Errorf("went after %v: %v, want when the pause is over", since(begin), err)
					}
				})
				pass(50 * ms)
				if err := u.Pause(pause.All(), sec, true); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				if err := f.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
