package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// An overloaded upstream has workers that each answer a call in 100 ms on average, and gets more calls than they can
// answer.
type overload struct {
	workers   int
	load      float64 // offered calls, as a multiple of the capacity
	high      float64 // share of high priority among these calls
	low       limit.Priority
	patience  time.Duration
	warm, end time.Duration
}

// A share counts offered and answered calls.
type share struct{ offered, answered atomic.Int64 }

func (s *share) percent() float64 {
	return 100 * float64(s.answered.Load()) / float64(s.offered.Load())
}

// play offers the load to an upstream with the policy. It returns the results of each priority after the warm-up, and
// the goodput: the percentage of the workers' time after it that went into answered calls. A number of answers would
// vary by 4% for three workers, because the work of 600 calls does.
func (o overload) play(t *testing.T, p weir.Policy, seed uint64) (high, low *share, goodput float64) {
	high, low = new(share), new(share)
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 30))
		u := open(t, p, weir.Options{})
		workers := make(chan struct{}, o.workers)
		capacity := float64(o.workers) / 0.1
		begin := clock.System.Now()
		var useful atomic.Int64
		var wg sync.WaitGroup
		for since(begin) < o.end {
			pass(time.Duration(r.ExpFloat64() / (capacity * o.load) * float64(time.Second)))
			c, of := weir.Call{Priority: o.low}, low
			if r.Float64() < o.high {
				c.Priority, of = limit.High, high
			}
			counts, work := since(begin) >= o.warm, time.Duration(r.ExpFloat64()*float64(100*ms))
			if counts {
				of.offered.Add(1)
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(background, o.patience)
				defer cancel()
				var started time.Duration
				_, err := weir.Do(ctx, u, c, func(ctx context.Context) (int, error) {
					workers <- struct{}{}
					started = since(begin)
					pass(work)
					<-workers
					return 0, ctx.Err()
				})
				if err != nil {
					return
				}
				useful.Add(int64(max(0, min(started+work, o.end)-max(started, o.warm))))
				if counts {
					of.answered.Add(1)
				}
			})
		}
		wg.Wait()
		goodput = 100 * float64(useful.Load()) / float64(int64(o.workers)*int64(o.end-o.warm))
	})
	return high, low, goodput
}

// In an overload of twice the capacity, calls of high priority that fit are answered, and the workers stay busy: with
// a learned capacity, a number of slots, or a rate, and with few or many workers.
//
// With one worker, 99.4% is out of reach. A call of low priority that has the worker keeps it, so high priority gets
// 16/17 of the capacity of 10 calls/s (see PriorityWeights), and needs 80% of it. Of such a queue, the share
// exp(-10/s * (16/17 - 0.8) * 3 s) = 1.4% of the calls waits longer than the 3 s that it may. With three workers it is
// 0.0003%. A learned capacity begins with 20 slots, which is work of 2 s for one worker: it is not tried.
func TestOverloadAnswersHighPriorityThatFits(t *testing.T) {
	policies := map[string]func(workers int) weir.Policy{
		"learned": func(int) weir.Policy { return weir.Policy{Concurrency: weir.Concurrency{Auto: true}} },
		"slots":   func(n int) weir.Policy { return weir.Policy{Concurrency: weir.Concurrency{Limit: n}} },
		"rate": func(n int) weir.Policy {
			return weir.Policy{Limits: []limit.Limit{rate("all", int64(10*n), sec, 1)}, Fair: weir.Fair{By: "none"}, MaxWait: sec}
		},
	}
	for _, of := range []struct {
		policy  string
		workers int
		long    time.Duration
		high    float64 // least percentage
	}{
		{"slots", 1, 300 * sec, 98.6},
		{"learned", 3, 60 * sec, 99.4}, {"slots", 3, 60 * sec, 99.4}, {"rate", 3, 60 * sec, 99.4},
		{"learned", 8, 40 * sec, 99.4}, {"slots", 8, 40 * sec, 99.4}, {"rate", 8, 40 * sec, 99.4},
		{"learned", 30, 20 * sec, 99.4}, {"slots", 30, 20 * sec, 99.4}, {"rate", 30, 20 * sec, 99.4},
		{"learned", 60, 10 * sec, 99.4}, {"slots", 60, 10 * sec, 99.4},
	} {
		for _, c := range []struct {
			high float64
			low  limit.Priority
		}{{0.1, limit.Low}, {0.25, limit.Low}, {0.25, limit.Normal}, {0.4, limit.Low}} {
			if of.workers == 60 && c.high < 0.4 {
				continue // as with 30
			}
			t.Run(fmt.Sprintf("%s, %d workers, %v of high priority, others %d", of.policy, of.workers, c.high, c.low), func(t *testing.T) {
				o := overload{workers: of.workers, load: 2, high: c.high, low: c.low, patience: 5 * sec, warm: 10 * sec, end: 10*sec + of.long}
				h, l, goodput := o.play(t, policies[of.policy](of.workers), 1)
				if h.percent() < of.high || goodput < 95 {
					t.Errorf("high %.2f%%, low %.2f%%, goodput %.1f%%; want at least %v%% of high and 95%% goodput", h.percent(), l.percent(), goodput, of.high)
				}
				if l.percent() < 10 {
					t.Errorf("low %.2f%%: it starves", l.percent())
				}
			})
		}
	}
}

// If there are too many calls of high priority, calls of low priority get their share by weight.
func TestOverloadOfHighPriorityLeavesLowItsShare(t *testing.T) {
	for name, c := range map[string]weir.Concurrency{"learned": {Auto: true}, "slots": {Limit: 30}} {
		t.Run(name, func(t *testing.T) {
			o := overload{workers: 30, load: 3, high: 0.5, low: limit.Low, patience: 5 * sec, warm: 10 * sec, end: 30 * sec}
			high, low, _ := o.play(t, weir.Policy{Concurrency: c}, 1)
			got := float64(low.answered.Load()) / float64(low.answered.Load()+high.answered.Load())
			if got < 0.8/17 || got > 3.0/17 {
				t.Errorf("low gets %.3f of what goes, want about a 17th", got)
			}
		})
	}
}

// A room has a number of places for waiting calls.
type room struct{ places, entered, inside atomic.Int64 }

func (r *room) Enter() bool {
	if r.inside.Add(1) > r.places.Load() {
		r.inside.Add(-1)
		return false
	}
	r.entered.Add(1)
	return true
}

func (r *room) Leave() { r.inside.Add(-1) }

// Wherever a call of low priority waits, it enters its room, and leaves it however the wait ends. Calls of other
// priorities do not enter.
func TestWaitingRoomBoundsLowPriority(t *testing.T) {
	fair := func(p *weir.Policy) { p.Fair.By, p.MaxWait = "user", time.Minute }
	for name, p := range map[string]weir.Policy{
		"slot":  bounded(1),
		"limit": with(steady(rate("all", 1, sec, 1)), fair),
		"both":  with(bounded(1, rate("all", 1, sec, 1)), fair),
	} {
		for _, byOperation := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", byOperation), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if byOperation {
						p.Operations = []weir.Operation{{Name: "batch", Priority: limit.Low}}
					}
					u := open(t, p, weir.Options{})
					first, d := try(u, weir.Call{})
					if !d.Allowed {
						t.Fatalf("the first: %+v", d)
					}
					r := new(room)
					r.places.Store(3)
					low, crowded := weir.Call{Priority: limit.Low, WaitingRoom: r}, new(atomic.Int64)
					if byOperation {
						low = weir.Call{Operation: "batch", WaitingRoom: r}
					}
					var wg sync.WaitGroup
					for i := range 5 {
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(background, time.Duration(20+i)*sec)
							defer cancel()
							_, err := acquire(ctx, u, low)
							if refused, ok := errors.AsType[*weir.Refusal](err); ok && refused.Crowded {
								crowded.Add(1)
								if refused.Reason != weir.ConcurrencyLimited || !refused.Unavailable() || refused.RetryAfter <= 0 {
									t.Errorf("refused by %+v", refused)
								}
							}
						})
						wg.Go(func() { _, _ = acquire(background, u, weir.Call{Priority: limit.High, WaitingRoom: r}) })
						synctest.Wait()
					}
					if r.entered.Load() != 3 || r.inside.Load() != 3 || crowded.Load() != 2 {
						t.Errorf("%d entered, %d inside, %d refused; want 3, 3 and 2", r.entered.Load(), r.inside.Load(), crowded.Load())
					}
					pass(200 * ms)
					first.Report(ok)
					wg.Wait()
					if n := r.inside.Load(); n != 0 {
						t.Errorf("%d in the room in the end", n)
					}
				})
			})
		}
	}
}
