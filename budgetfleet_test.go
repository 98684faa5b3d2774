package weir_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func dollars(n int64) weir.Call {
	return weir.Call{Cost: map[string]int64{limit.USD: n, limit.USDMost: n}}
}

func costs(n int64) outcome.Outcome {
	return outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{limit.USD: n}}
}

// sharedBudgets are a calendar and a rolling budget of 100 units.
var sharedBudgets = map[string]limit.Limit{
	"calendar": {Name: "money", Unit: limit.USD, Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Month},
	"rolling":  {Name: "money", Unit: limit.USD, Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: 240 * time.Hour}},
}

// A call waits while calls of another process hold what it needs, whether the policy is fair or not. It proceeds when
// those return enough, and is refused as spent when they do not.
func TestFleetBudgetWaitsForCallsOfOtherProcesses(t *testing.T) {
	for name, l := range sharedBudgets {
		for _, fair := range []weir.Fair{{}, {By: "user"}} {
			for _, cost := range []int64{10, 60} {
				synctest.Test(t, func(t *testing.T) {
					all := joined(t, 2, weir.Policy{Limits: []limit.Limit{l}, MaxWait: 30 * time.Second, Fair: fair})
					time.Sleep(3 * time.Second) // the fleet has reached its store
					first, err := all[0].Acquire(background, dollars(60))
					if err != nil {
						t.Fatal(err)
					}
					if _, d := try(all[1], dollars(60)); d.Allowed || d.Reason == weir.QuotaExhausted {
						t.Errorf("%s: %+v, want a refusal that is not of a spent budget", name, d)
					}
					begin := time.Now()
					time.AfterFunc(3*time.Second, func() { first.Report(costs(cost)) })
					second, err := all[1].Acquire(background, dollars(60))
					waited := time.Since(begin)
					switch {
					case waited < 3*time.Second || waited > 5*time.Second:
						t.Errorf("%s, %+v, %d: waited %v", name, fair, cost, waited)
					case cost == 10 && err != nil:
						t.Errorf("%s, %+v: %v", name, fair, err)
					case cost == 10:
						second.Report(costs(60))
					case err == nil || refusal(t, err).Reason != weir.QuotaExhausted:
						t.Errorf("%s, %+v: %v, want a spent budget", name, fair, err)
					}
					if cost != 10 {
						return
					}
					time.Sleep(2 * time.Second)
					if v := all[1].Look(0).Limits[0].Level; v.Held > 10 { // what processes keep for an outage of the store
						t.Errorf("%s: %+v", name, v)
					}
					if _, err := all[0].Acquire(background, dollars(60)); err == nil || refusal(t, err).Reason != weir.QuotaExhausted {
						t.Errorf("%s: %v, want a spent budget", name, err)
					}
				})
			}
		}
	}
}

// The hold of a process that was killed counts as held for ten minutes, and then as spent.
func TestFleetBudgetHoldOfKilledProcessIsSpentAfterTenMinutes(t *testing.T) {
	for name, l := range sharedBudgets {
		synctest.Test(t, func(t *testing.T) {
			store := fleet.NewMemory(nil)
			process := func() (*weir.Upstream, func()) {
				f := fleet.New(store, fleet.Options{})
				f.Start()
				u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Second}, weir.Options{Fleet: f})
				if err != nil {
					t.Fatal(err)
				}
				return u, func() { u.Close(); _ = f.Close(context.Background()) }
			}
			killed, end := process()
			defer end()
			time.Sleep(3 * time.Second)
			if _, err := killed.Acquire(background, dollars(60)); err != nil { // it never ends
				t.Fatal(err)
			}
			other, end := process()
			defer end()
			time.Sleep(3 * time.Second)
			for _, c := range []struct {
				after time.Duration
				want  weir.Reason
			}{{0, weir.RateLimited}, {9 * time.Minute, weir.RateLimited}, {2 * time.Minute, weir.QuotaExhausted}} {
				time.Sleep(c.after)
				if _, err := other.Acquire(background, dollars(60)); err == nil || refusal(t, err).Reason != c.want {
					t.Errorf("%s: after %v: %v, want %v", name, c.after, err, c.want)
				}
			}
			if p, err := other.Acquire(background, dollars(30)); err != nil {
				t.Errorf("%s: the rest is refused: %v", name, err)
			} else {
				p.Report(costs(30))
			}
		})
	}
}

// In random histories of three processes, no units are held after all calls have ended, and the spent amount is the sum of
// their costs.
func TestFleetBudgetSpendsTheSumOfCosts(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range raced.Of(25, 5) {
		for name, l := range sharedBudgets {
			for _, loss := range []float64{0, 0.1} {
				synctest.Test(t, func(t *testing.T) { fleetHistory(t, r, name, l, loss) })
			}
		}
	}
}

// fleetHistory is one history, in which that share of the requests gets no answer.
func fleetHistory(t *testing.T, r *rand.Rand, name string, l limit.Limit, loss float64) {
	l.Amount = 10_000
	memory := fleet.NewMemory(nil)
	var stores []*unreliable
	begin := func() (*weir.Upstream, func()) {
		lost := rand.New(rand.NewPCG(r.Uint64(), 0))
		store := &unreliable{Store: memory, next: func() string {
			if lost.Float64() < loss {
				return losses[lost.IntN(len(losses))]
			}
			return ""
		}}
		stores = append(stores, store)
		f := fleet.New(store, fleet.Options{})
		f.Start()
		u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{l}, MaxWait: 2 * time.Second, Breaker: breaker.Config{Off: true}}, weir.Options{Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		return u, func() { u.Close(); _ = f.Close(context.Background()) }
	}
	var all []*weir.Upstream
	var ends []func()
	for range 3 {
		u, end := begin()
		all, ends = append(all, u), append(ends, end)
	}
	var spent, flying int64
	var flights []*weir.Permit
	finish := func(i int) {
		p := flights[i]
		flights = append(flights[:i], flights[i+1:]...)
		held := p.Budgets()[0].Cost
		flying -= held
		switch r.IntN(4) {
		case 0: // the caller left: nothing reports the cost
			p.Report(outcome.Outcome{Class: outcome.Canceled})
			spent += held
		case 1:
			p.Report(outcome.Outcome{Class: outcome.Failed})
		default:
			cost := r.Int64N(held + 1)
			p.Report(costs(cost))
			spent += cost
		}
	}
	for range 80 {
		time.Sleep(time.Duration(r.IntN(700)) * time.Millisecond)
		if len(flights) > 0 && r.IntN(2) == 0 {
			finish(r.IntN(len(flights)))
			continue
		}
		n := 1 + r.Int64N(1500)
		p, err := all[r.IntN(len(all))].Acquire(background, dollars(n))
		if err == nil {
			flights, flying = append(flights, p), flying+n
			if spent+flying > l.Amount {
				t.Fatalf("%s: %d spent and %d held of %d", name, spent, flying, l.Amount)
			}
		}
	}
	for len(flights) > 0 {
		finish(0)
	}
	for _, s := range stores {
		s.set(nil)
	}
	for _, end := range ends {
		end()
	}
	last, end := begin()
	stores[3].set(nil)
	defer end()
	time.Sleep(3 * time.Second)
	if p, err := last.Acquire(background, dollars(1)); err == nil {
		p.Report(costs(1))
		spent++
	}
	time.Sleep(2 * time.Second)
	if v := last.Look(0).Limits[0].Level; v.Full-v.Left-v.Held != spent || v.Held > 1 {
		t.Errorf("%s, loss %v: %d spent and %d held, want %d spent", name, loss, v.Full-v.Left-v.Held, v.Held, spent)
	}
}

// An unreliable store executes requests of one process, and loses some of them or their answers.
type unreliable struct {
	fleet.Store
	mu   sync.Mutex
	next func() string // what happens to the next request
}

// set changes what happens to requests from now on.
func (u *unreliable) set(next func() string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = next
}

func (u *unreliable) Take(ctx context.Context, a *fleet.Ask) error {
	u.mu.Lock()
	what := ""
	if u.next != nil {
		what = u.next()
	}
	u.mu.Unlock()
	b := *a // the caller may use the ask again while a copy is under way
	b.Settle, b.Claims, b.Grants = slices.Clone(a.Settle), slices.Clone(a.Claims), nil
	switch what {
	case "lost answer":
		_ = u.Store.Take(context.Background(), &b)
	case "late request":
		time.AfterFunc(3*time.Second, func() { _ = u.Store.Take(context.Background(), &b) })
	case "lost request":
	default:
		return u.Store.Take(ctx, a)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// losses are what may happen to a request that gets no answer.
var losses = []string{"lost request", "lost answer", "late request"}

// Units that a process returns, and units that the store granted to it, reach the budget once, also if requests get no
// answer.
func TestFleetBudgetReturnsAfterRequestsWithoutAnswer(t *testing.T) {
	for name, l := range sharedBudgets {
		for _, loss := range losses {
			for _, lost := range []string{"return", "return with a waiting call", "grant", "grant of a caller that left", "return before the process ends"} {
				t.Run(name+"/"+loss+"/"+lost, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { loseOnce(t, l, loss, lost) })
				})
			}
		}
	}
}

func loseOnce(t *testing.T, l limit.Limit, loss, lost string) {
	memory := fleet.NewMemory(nil)
	store := &unreliable{Store: memory}
	process := func(s fleet.Store) (*weir.Upstream, func()) {
		f := fleet.New(s, fleet.Options{})
		f.Start()
		u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{l}, MaxWait: 2 * time.Second}, weir.Options{Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		return u, sync.OnceFunc(func() { u.Close(); _ = f.Close(context.Background()) })
	}
	u, end := process(store)
	defer end()
	other, endOther := process(memory)
	defer endOther()
	time.Sleep(3 * time.Second)
	ctx, leave := context.WithCancel(background)
	defer leave()
	fail := func(times int) { // the next requests
		store.set(func() string {
			if times--; times < 0 {
				return ""
			}
			return loss
		})
	}
	spent := int64(10)
	switch lost {
	case "grant of a caller that left":
		fail(1 << 30)
		time.AfterFunc(time.Second, func() { store.set(nil) })
		time.AfterFunc(50*time.Millisecond, leave)
		if _, err := u.Acquire(ctx, dollars(60)); err == nil {
			t.Fatal("the call proceeds")
		}
		spent = 0
	case "grant":
		fail(2)
		p, err := u.Acquire(ctx, dollars(60))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		p.Report(costs(10))
	case "return with a waiting call":
		p, err := u.Acquire(ctx, dollars(60))
		if err != nil {
			t.Fatal(err)
		}
		fail(2)
		p.Report(costs(10))
		if p, err = u.Acquire(ctx, dollars(60)); err != nil {
			t.Fatal(err)
		}
		p.Report(costs(20))
		spent = 30
	default:
		p, err := u.Acquire(ctx, dollars(60))
		if err != nil {
			t.Fatal(err)
		}
		fail(1)
		p.Report(costs(10))
		if lost != "return" {
			time.Sleep(50 * time.Millisecond) // the first request has no answer yet
			end()
		}
	}
	time.Sleep(8 * time.Second)
	end()
	p, err := other.Acquire(background, dollars(100-spent))
	if err != nil {
		t.Fatalf("the rest of the budget is refused: %v", err)
	}
	if _, d := try(other, dollars(1)); d.Allowed {
		t.Error("more than the budget is granted")
	}
	p.Report(costs(100 - spent))
	if v := other.Look(0).Limits[0].Level; v.Left != 0 || v.Held != 0 {
		t.Errorf("%+v, want all spent", v)
	}
}
