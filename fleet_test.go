package weir_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// joined returns several processes that call one upstream and share a store.
func joined(t *testing.T, n int, p weir.Policy) (all []*weir.Upstream) {
	t.Helper()
	store := fleet.NewMemory(nil)
	for range n {
		f := fleet.New(store, fleet.Options{})
		f.Start()
		u, err := weir.New("up", p, weir.Options{Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
		t.Cleanup(func() {
			u.Close()
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return all
}

func TestAFleetSharesABudgetOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 4, weir.Policy{
			Budget: retry.BudgetConfig{All: bucket.Rate{Amount: 100, Per: time.Minute, Burst: 20}},
			Retry:  retry.Config{Base: time.Millisecond},
		})
		var attempts, calls atomic.Int64
		var wg sync.WaitGroup
		for _, u := range all {
			wg.Go(func() {
				for i := range 600 {
					calls.Add(1)
					_, _ = weir.Do(context.Background(), u, weir.Call{Safe: true}, func(context.Context) (int, error) {
						attempts.Add(1)
						if i%2 == 0 { // without any success, retries would be held back
							return 1, nil
						}
						return 0, errThrottled
					})
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		retries := attempts.Load() - calls.Load()
		if retries > 20+101 || retries < 95 { // a little over a minute
			t.Errorf("%d retries of four processes in a minute, want about 120", retries)
		}
	})
}

// An outage uses as many of 100 retries per minute as it needs at one time, because retries come in bursts. No minute
// has more. No burst is configured. The process's own budget is off, because it would end an outage of 60 calls after
// 16 retries.
func TestABudgetOfAllBearsASpell(t *testing.T) {
	for _, n := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			p := weir.Policy{Budget: retry.BudgetConfig{Off: true, All: bucket.Rate{Amount: 100, Per: time.Minute}}}
			p.Retry, _ = retry.Schedule("aws-patient")
			all := []*weir.Upstream{open(t, p, weir.Options{})}
			if n > 0 {
				all = joined(t, n, p)
			}
			time.Sleep(3 * time.Second) // the fleet has reached its store
			var mu sync.Mutex
			var retries []time.Duration
			good := 0
			spell := func(calls int) {
				var wg sync.WaitGroup
				for i := range calls {
					wg.Go(func() {
						failed := time.Duration(-1) // when the retry was paid: it is sent later, possibly together with others
						_, err := weir.Do(background, all[i%len(all)], weir.Call{Safe: true}, func(context.Context) (int, error) {
							mu.Lock()
							defer mu.Unlock()
							if failed >= 0 {
								retries = append(retries, failed)
								return 1, nil
							}
							failed = since(0)
							return 0, errThrottled
						})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							good++
						}
					})
				}
				wg.Wait()
			}
			if spell(60); good < 55 {
				t.Errorf("%d processes: %d of 60 calls at once were retried", n, good)
			}
			for range 10 {
				time.Sleep(9 * time.Second)
				spell(40)
			}
			slices.Sort(retries)
			for i := range retries {
				j, _ := slices.BinarySearch(retries, retries[i]+time.Minute)
				if j-i > 100 {
					t.Fatalf("%d processes: %d retries in a minute", n, j-i)
				}
			}
		})
	}
}

// A call is charged to all its limits or to none, shared and local.
func TestSharedAndLocalLimitsAreTakenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 2, weir.Policy{
			MaxWait: -1,
			Limits: []limit.Limit{
				{Name: "requests", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 50}},
				{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 10, Per: time.Hour, Burst: 100}},
				{Name: "own", Local: true, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 15}},
			},
		})
		var went [2]int
		for range 60 {
			for i, u := range all {
				p, err := u.Acquire(context.Background(), weir.Call{Cost: map[string]int64{"tokens": 3}})
				if err == nil {
					went[i]++
					p.Report(outcome.Outcome{Class: outcome.OK})
				} else if r, ok := errors.AsType[*weir.Refusal](err); !ok || r.Limit == "" || r.RetryAfter <= 0 {
					t.Fatalf("refused with %v", err)
				}
				time.Sleep(time.Millisecond)
			}
		}
		if went != [2]int{15, 15} {
			t.Fatalf("%v went, want what each's own limit allows", went)
		}
		// 30 requests and 90 tokens are used: calls that the third limit refused cost nothing.
		for _, l := range all[1].Look(10).Limits { // the process with the last request is up to date
			if l.Limit.Name == "tokens" && (l.Level.Left < 8 || l.Level.Left > 10) || l.Limit.Name == "requests" && (l.Level.Left < 18 || l.Level.Left > 20) {
				t.Errorf("%s: %d left", l.Limit.Name, l.Level.Left)
			}
		}
	})
}

// Unused units of a reservation return to the whole fleet. Additional usage is a debt of all processes.
func TestAFleetSettlesWhatWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 2, weir.Policy{MaxWait: -1, Limits: []limit.Limit{
			{Name: "tokens", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: time.Hour}},
		}})
		take := func(u *weir.Upstream, n int64) (*weir.Permit, error) {
			return u.Acquire(context.Background(), weir.Call{Cost: map[string]int64{"tokens": n}})
		}
		p, err := take(all[0], 900)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := take(all[1], 200); err == nil {
			t.Fatal("1100 of 1000 went")
		}
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 100}})
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 0}}) // uses nothing
		time.Sleep(3 * time.Second)
		if p, err = take(all[1], 850); err != nil {
			t.Fatalf("800 have come back: %v", err)
		}
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 1500}})
		time.Sleep(3 * time.Second)
		for i, u := range all {
			if _, err := take(u, 1); err == nil {
				t.Errorf("process %d goes on although 600 are owed", i)
			}
		}
	})
}

// A call that costs more than its limit can ever hold fails immediately.
func TestSharedCostAboveTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 1, weir.Policy{Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}}})
		begin := time.Now()
		_, err := all[0].Acquire(context.Background(), weir.Call{Cost: map[string]int64{limit.Requests: 101}})
		if !errors.Is(err, weir.ErrTooMuch) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
}

// While the store answers, a process uses its reserve for an outage for its own calls: a call that does not wait is
// refused only if the store and the process's reserve together have no unit left.
func TestReservedUnitsServeCallsThatDoNotWait(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "minute", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 200, Per: time.Minute}},
		{Name: "day", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 200}, Every: bucket.Day},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := joined(t, 2, weir.Policy{MaxWait: -1, Limits: []limit.Limit{l}})
			time.Sleep(3 * time.Second)
			call := func(u *weir.Upstream, n int) (served int) {
				for range n {
					if p, err := u.Acquire(background, weir.Call{}); err == nil {
						p.Report(outcome.Outcome{Class: outcome.OK})
						served++
					}
				}
				return served
			}
			used := 0
			for range 10 { // the first process reserves in proportion to its use
				used += call(all[0], 2)
				time.Sleep(time.Second)
			}
			used += call(all[1], 200) // the second process takes the rest, possibly except for its own last call
			if used += call(all[0], 200); used < 199 {
				t.Errorf("%s: %d of 200 units served calls", l.Name, used)
			}
			if used += call(all[0], 1) + call(all[1], 1); used > 200 {
				t.Errorf("%s: %d calls, the limit is 200", l.Name, used)
			}
		})
	}
}
