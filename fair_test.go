package weir_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// inTurn is a policy whose users wait in turn.
func inTurn(limits ...limit.Limit) weir.Policy {
	p := steady(limits...)
	p.Fair.By, p.MaxWait = "user", time.Minute
	return p
}

func of(user string) weir.Call { return weir.Call{Keys: map[string]string{"user": user}} }

// acquire asks for one permit and reports how long that took.
func acquire(ctx context.Context, u *weir.Upstream, c weir.Call) (time.Duration, error) {
	begin := clock.System.Now()
	p, err := u.Acquire(ctx, c)
	took := since(begin)
	if err == nil {
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	return took, err
}

func p99(waits []time.Duration) time.Duration {
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// light sends ten calls at once every so often, and gives the longest waits. It has
// half of the limit at most.
func light(t *testing.T, flood bool) time.Duration {
	var waits []time.Duration
	synctest.Test(t, func(t *testing.T) {
		r := chance(7)
		u := open(t, inTurn(rate("all", 20, sec, 1)), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var mu sync.Mutex
		if flood {
			for range 50 { // as many callers as calls: 50 times the other's
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _ = acquire(ctx, u, of("flood"))
					}
				})
			}
		}
		pass(3 * sec)
		for range 60 {
			for range 10 {
				wg.Go(func() {
					took, err := acquire(t.Context(), u, of("light"))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					waits = append(waits, took)
					mu.Unlock()
				})
			}
			pass(sec + time.Duration(r.Int64N(int64(sec))))
		}
		cancel()
		wg.Wait()
	})
	return p99(waits)
}

func TestAFloodMovesNobodyElse(t *testing.T) {
	alone, among := light(t, false), light(t, true)
	t.Logf("p99 of the wait: %v alone, %v beside a flood", alone, among)
	const turn, call = 50 * ms, 250 * ms // of the limit; and how long a call takes once it goes
	if alone < 100*ms || among > 2*alone+turn || among+call > 2*(alone+call) {
		t.Errorf("p99 of the wait is %v alone and %v beside a flood, want twice as much and a turn at most", alone, among)
	}
}

func TestSixtyCallersAreAllAdmitted(t *testing.T) {
	for _, users := range []int{1, 7, 60} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, inTurn(rate("all", 20, sec, 5)), weir.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 30*sec)
			defer cancel()
			begin := clock.System.Now()
			var wg sync.WaitGroup
			for i := range 60 {
				wg.Go(func() {
					if _, err := acquire(ctx, u, of(fmt.Sprint(i%users))); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if took := since(begin); took > 2760*ms {
				t.Errorf("%d users took %v, want 2.75s", users, took)
			}
		})
	}
}

// Who is held by a limit of its own stands in nobody's way, and neither does another
// operation with a limit of its own.
func TestNobodyWaitsForTheLimitsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		put := rate("put", 1, sec, 1)
		put.Operations = []string{"put"}
		u := open(t, inTurn(rate("all", 100, sec, 10), scoped(rate("own", 1, sec, 1), "user"), put), weir.Options{})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { _, _ = acquire(t.Context(), u, of("greedy")) })
			c := of(fmt.Sprint("writer", i))
			c.Operation = "put"
			wg.Go(func() { _, _ = acquire(t.Context(), u, c) })
		}
		synctest.Wait()
		for i := range 50 {
			if took, err := acquire(t.Context(), u, of(fmt.Sprint("user", i))); err != nil || took > 20*ms {
				t.Errorf("user %d: waited %v, %v", i, took, err)
			}
			pass(10 * ms)
		}
		wg.Wait()
	})
}

// Many users each hold back their own flood at their own limit, and share what all
// of them have.
func TestOwnLimitsAndOneOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 20, sec, 5), scoped(rate("own", 5, sec, 10), "user")), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got := make([]int, 10)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range got {
			for range 20 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := acquire(ctx, u, of(fmt.Sprint(i))); err == nil {
							mu.Lock()
							got[i]++
							mu.Unlock()
						}
					}
				})
			}
		}
		pass(60 * sec)
		mu.Lock()
		all := 0
		for _, n := range got {
			all += n
		}
		if spread := slices.Max(got) - slices.Min(got); all < 1190 || all > 1205 || spread > 6 {
			t.Errorf("%d went in a minute, of each user %v; want 1200, and the same of each", all, got)
		}
		mu.Unlock()
		cancel()
		wg.Wait()
	})
}

func TestCostIsWhatIsScarce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := rate("tokens", 100_000, time.Minute, 10_000)
		tokens.Unit = "tokens"
		u := open(t, inTurn(tokens, rate("all", 1000, sec, 0)), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got := map[string]int64{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for user, cost := range map[string]int64{"large": 8000, "small": 500} {
			for range 40 {
				c := of(user)
				c.Cost = map[string]int64{"tokens": cost}
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := acquire(ctx, u, c); err == nil {
							mu.Lock()
							got[user] += cost
							mu.Unlock()
						} else {
							pass(sec)
						}
					}
				})
			}
		}
		pass(10 * time.Minute)
		mu.Lock()
		if a, b := got["large"], got["small"]; max(a-b, b-a) > 2*8000+10_000 || a+b < 950_000 {
			t.Errorf("got %v tokens of a million, want the same", got)
		}
		mu.Unlock()
		cancel()
		wg.Wait()
	})
}

func TestPriorityAndWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 100, sec, 1)), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, c := range []struct {
			user     string
			priority limit.Priority
			weight   int
		}{{"high", limit.High, 0}, {"a", limit.Normal, 3}, {"b", limit.Normal, 1}, {"low", limit.Low, 0}} {
			call := of(c.user)
			call.Priority, call.Weight = c.priority, c.weight
			for range 30 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := acquire(ctx, u, call); err == nil {
							mu.Lock()
							got[c.user]++
							mu.Unlock()
						}
					}
				})
			}
		}
		pass(21 * sec)
		mu.Lock()
		for user, want := range map[string]int{"high": 1600, "a": 300, "b": 100, "low": 100} {
			if n := got[user]; n < want-5 || n > want+5 {
				t.Errorf("%s got %d, want %d", user, n, want)
			}
		}
		mu.Unlock()
		cancel()
		wg.Wait()
	})
}

func TestARefusalSaysThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 1, sec, 1))
		p.Fair.PerFlow = 5
		u := open(t, p, weir.Options{})
		var wg sync.WaitGroup
		enter := func(user string, d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := acquire(ctx, u, of(user))
			return err
		}
		wg.Go(func() { _ = enter("a", time.Minute) })
		synctest.Wait()
		for range 4 {
			wg.Go(func() { _ = enter("a", time.Minute) })
			synctest.Wait()
		}
		begin := clock.System.Now()
		r := refusal(t, enter("a", 4*sec)) // its turn would be the fifth, after 5s
		if r.Place != 5 || r.Waiting != 5 || r.RetryAfter != 5*sec || r.Limit != "all" || r.Reason != weir.RateLimited || since(begin) != 0 {
			t.Errorf("hopeless: got %+v after %v", r, since(begin))
		}
		if want := "api default: rate_limited by limit all (1/s burst 1): retry after 5s, place 5 of 5 in line"; r.Error() != want {
			t.Errorf("got %q, want %q", r, want)
		}
		wg.Go(func() { _ = enter("a", time.Minute) })
		synctest.Wait()
		if r = refusal(t, enter("a", time.Minute)); r.Place != 6 || r.Waiting != 6 || since(begin) != 0 {
			t.Errorf("one too many: got %+v after %v", r, since(begin))
		}
		for i := range 3 { // nobody can know that others come between
			wg.Go(func() {
				pass(100 * ms)
				_ = enter(fmt.Sprint("other", i), time.Minute)
			})
		}
		r = refusal(t, enter("b", 1500*ms))
		if got := since(begin); r.Place != 2 && r.Place != 1 || got > 1500*ms {
			t.Errorf("got %+v after %v", r, got)
		}
		wg.Wait()
	})
}

func TestWhatOpensRefusesAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 1, time.Minute, 1))
		p.Breaker, p.MaxWait = breaker.Config{}, time.Hour
		u := open(t, p, weir.Options{})
		var wg sync.WaitGroup
		var left []time.Duration
		var mu sync.Mutex
		for i := range 30 {
			wg.Go(func() {
				_, err := acquire(t.Context(), u, of(fmt.Sprint(i%3)))
				if err == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if r := refusal(t, err); r.Reason == weir.CircuitOpen {
					left = append(left, clock.System.Now())
				}
			})
		}
		pass(90 * sec)
		begin := clock.System.Now()
		u.Breaker("").ForceOpen(u.Now(), time.Hour)
		wg.Wait()
		if len(left) != 28 || slices.Max(left) > begin {
			t.Errorf("%d were refused, the last after %v; want 28 at once", len(left), slices.Max(left)-begin)
		}
	})
}

// A pause prolongs the wait of those who can wait, and ends that of the others.
func TestAPauseWhileInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 1, sec, 2)), weir.Options{})
		first, err := u.Acquire(t.Context(), of("a"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = acquire(t.Context(), u, of("a"))
		begin := clock.System.Now()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				patience := 15 * sec
				if i%2 == 0 {
					patience = time.Minute
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				took, err := acquire(ctx, u, of(fmt.Sprint(i)))
				if i%2 == 0 && (err != nil || took < 20*sec || took > 24*sec) {
					t.Errorf("who can wait waited %v, %v", took, err)
				}
				if r, ok := errors.AsType[*weir.Refusal](err); i%2 == 1 && (!ok || took > 2*sec || r.RetryAfter < 18*sec) {
					t.Errorf("who cannot wait: %v after %v", err, took)
				}
			})
		}
		pass(500 * ms)
		first.Report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 20 * sec}})
		wg.Wait()
		if took := since(begin); took > 26*sec {
			t.Errorf("it took %v", took)
		}
	})
}

// Turned off or on while calls wait, nobody is forgotten.
func TestFairnessIsChangedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 10, sec, 1))
		u := open(t, p, weir.Options{})
		begin := clock.System.Now()
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if _, err := acquire(t.Context(), u, of(fmt.Sprint(i%4))); err != nil {
					t.Error(err)
				}
			})
			pass(ms)
			if i%10 == 9 {
				p.Fair = weir.Fair{By: map[string]string{"user": "", "": "user"}[p.Fair.By]}
				set(t, u, p)
			}
		}
		p.Limits[0].Amount = 20
		set(t, u, p)
		wg.Wait()
		if took := since(begin); took > 3*sec {
			t.Errorf("40 calls took %v at 20 a second", took)
		}
	})
}

func TestFairPolicyIsChecked(t *testing.T) {
	for want, f := range map[string]weir.Fair{
		"":                                {By: "user"},
		"fair: by \"\": name the scope":   {Longest: 3},
		"fair: weight -1 of lane high":    {By: "user", Weights: weir.LaneWeights{High: -1}},
		"fair: weight 1001 of lane low":   {By: "user", Weights: weir.LaneWeights{Low: 1001}},
		"fair: longest -1: must not be":   {By: "user", Longest: -1},
		"fair: per flow -1: must not be ": {By: "user", PerFlow: -1},
	} {
		err := weir.Policy{Fair: f}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", f, err, want)
		}
	}
	if got, want := (weir.Policy{Fair: weir.Fair{By: "user"}}).WithDefaults().Fair, (weir.Fair{By: "user", Weights: weir.LaneWeights{High: 16, Normal: 4, Low: 1}, Longest: 10_000, PerFlow: 1_000}); got != want {
		t.Errorf("defaults are %+v", got)
	}
}

// A weigher is a meter of units.
type weigher struct {
	rate, burst, n, lowest float64
	any                    bool
	broken                 error
}

func (m *weigher) grant(at time.Duration, units int64) {
	due := m.rate * at.Seconds()
	if before := m.n - due; !m.any || before < m.lowest {
		m.lowest, m.any = before, true
	}
	m.n += float64(units)
	if over := m.n - due - m.lowest - m.burst; over > 1e-3 && m.broken == nil {
		m.broken = fmt.Errorf("%d units at %v are %v over %v/s burst %v", units, at, over, m.rate, m.burst)
	}
}

// Whatever comes, waits, leaves, pauses, opens and changes: everybody ends in time,
// nothing goes beyond a limit, and nothing is lost.
func TestPropertyOfLines(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) { fairHistory(t, chance(seed), seed) })
		if t.Failed() {
			return
		}
	}
}

func fairHistory(t *testing.T, r *rand.Rand, seed uint64) {
	all, own := rate("all", 5+r.Int64N(60), sec, 1+r.Int64N(8)), scoped(rate("own", 2+r.Int64N(20), sec, 1+r.Int64N(5)), "user")
	tokens := rate("tokens", 500+r.Int64N(5000), sec, 1000)
	tokens.Unit = "tokens"
	p := inTurn(all, own, tokens)
	if r.IntN(4) == 0 {
		p.Limits = append(p.Limits, limit.Limit{Name: "window", Shape: limit.Rolling, Rate: all.Rate})
		p.Limits[3].Burst, p.Limits[3].Per = 0, 2*sec
	}
	p.Breaker = breaker.Config{Failures: 3, Open: sec}
	p.MaxWait = time.Duration(1+r.IntN(5)) * sec
	p.Fair.Longest, p.Fair.PerFlow = 10+r.IntN(60), 5+r.IntN(30)
	u := open(t, p, weir.Options{})
	begin := clock.System.Now()
	var mu sync.Mutex
	meters := map[string]*weigher{}
	count := func(l limit.Limit, key string, n int64) {
		m := meters[l.Name+key]
		if m == nil {
			m = &weigher{rate: l.PerSecond(), burst: float64(l.Full())}
			meters[l.Name+key] = m
		}
		m.grant(since(begin), n)
	}
	var wg sync.WaitGroup
	for range 30 + r.IntN(60) {
		own := chance(r.Uint64())
		wg.Go(func() {
			pass(time.Duration(own.Int64N(int64(3 * sec))))
			c := of(string(rune('a' + own.IntN(4))))
			c.Cost = map[string]int64{"tokens": own.Int64N(1000)}
			c.Priority, c.Weight = limit.Priority(own.IntN(3)-1), own.IntN(5)
			patience := time.Duration(own.Int64N(int64(6 * sec)))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if own.IntN(5) == 0 {
				time.AfterFunc(time.Duration(own.Int64N(int64(2*sec))), cancel)
			}
			start := clock.System.Now()
			permit, err := u.Acquire(ctx, c)
			if took := since(start); took > min(patience, p.MaxWait) {
				t.Errorf("seed %d: who could wait %v and was let wait %v waited %v: %v", seed, patience, p.MaxWait, took, err)
			}
			if err != nil {
				r, ok := errors.AsType[*weir.Refusal](err)
				if ok && (r.RetryAfter <= 0 || r.Place < 0 || r.Place > r.Waiting) {
					t.Errorf("seed %d: %+v", seed, r)
				}
				return
			}
			mu.Lock()
			count(p.Limits[0], "", 1)
			count(p.Limits[1], c.Keys["user"], 1)
			count(p.Limits[2], "", c.Cost["tokens"])
			mu.Unlock()
			pass(time.Duration(own.Int64N(int64(200 * ms))))
			o := outcome.Outcome{Class: outcome.OK}
			switch own.IntN(12) {
			case 0, 1:
				o.Class = outcome.Failed
			case 2:
				o.Class, o.Hint = outcome.Throttled, outcome.Hint{Said: true, After: time.Duration(own.Int64N(int64(sec)))}
			}
			permit.Report(o)
		})
	}
	wg.Go(func() {
		own := chance(seed + 1<<40)
		for range own.IntN(5) {
			pass(time.Duration(own.Int64N(int64(sec))))
			q := p
			if q.Fair.Weights.Low = 1 + own.IntN(9); own.IntN(3) == 0 {
				q.Fair = weir.Fair{}
			}
			set(t, u, q)
			if own.IntN(3) == 0 {
				u.Breaker("").ForceOpen(u.Now(), 300*ms)
			}
		}
	})
	wg.Wait()
	for name, m := range meters {
		if m.broken != nil {
			t.Errorf("seed %d: limit %s: %v", seed, name, m.broken)
		}
	}
	pass(time.Minute)
	for _, v := range u.Look(10).Limits {
		if v.Level.Left != v.Level.Full {
			t.Errorf("seed %d: after a minute limit %s has %d of %d for key %q", seed, v.Limit.Name, v.Level.Left, v.Level.Full, v.Key)
		}
	}
	set(t, u, p)
	if took, err := acquire(t.Context(), u, of("a")); took != 0 {
		t.Errorf("seed %d: after a minute a call waits %v: %v", seed, took, err)
	}
}

// All of a limit is used while there is demand, whatever the calls cost.
func TestLinesUseTheLimit(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := chance(seed)
			tokens := rate("tokens", 1000, sec, 200)
			tokens.Unit = "tokens"
			p := inTurn(tokens, scoped(rate("own", 40, sec, 0), "user"), rate("all", 200, sec, 1))
			p.MaxWait = 2 * sec
			u := open(t, p, weir.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			var used int64
			var wg sync.WaitGroup
			for i := range 40 {
				own := chance(r.Uint64())
				wg.Go(func() {
					for ctx.Err() == nil {
						c := of(fmt.Sprint(i % 7))
						c.Cost = map[string]int64{"tokens": 1 + own.Int64N(99)}
						inner, stop := context.WithTimeout(ctx, time.Duration(own.Int64N(int64(4*sec))))
						if took, err := acquire(inner, u, c); err == nil {
							mu.Lock()
							used += c.Cost["tokens"]
							mu.Unlock()
						} else if took == 0 {
							pass(10 * ms)
						}
						stop()
					}
				})
			}
			pass(30 * sec)
			mu.Lock()
			if used < 28_500 || used > 30_200 {
				t.Errorf("seed %d: %d of 30000 tokens were used", seed, used)
			}
			mu.Unlock()
			cancel()
			wg.Wait()
		})
	}
}

// Processes that share a limit through a store, each with lines of its own.
func TestLinesInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 50, sec, 10))
		p.MaxWait = 5 * sec
		all := fleet(t, 3, p)
		ctx, cancel := context.WithCancel(t.Context())
		begin := clock.System.Now()
		m := &weigher{rate: 50, burst: 10}
		got := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 120 {
			user := cmp.Or(map[int]string{0: "light", 1: "light"}[i%40], "flood")
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := acquire(ctx, all[i%3], of(user)); err == nil {
						mu.Lock()
						m.grant(since(begin), 1)
						got[user]++
						mu.Unlock()
					} else {
						pass(10 * ms)
					}
				}
			})
		}
		pass(20 * sec)
		mu.Lock()
		if n := got["light"] + got["flood"]; m.broken != nil || n < 950 {
			t.Errorf("%d of 1000 went, %v", n, m.broken)
		}
		t.Logf("got %v", got)
		mu.Unlock()
		cancel()
		wg.Wait()
	})
}

// A call that need not wait costs what it cost without lines.
func TestLinesAllocateNothingForWhoNeedNotWait(t *testing.T) {
	allocs := func(p weir.Policy) float64 {
		u := open(t, p, weir.Options{})
		c := of("a")
		return testing.AllocsPerRun(1000, func() {
			_, _ = weir.Do(background, u, c, func(context.Context) (int, error) { return 1, nil })
		})
	}
	l := []limit.Limit{rate("all", 1_000_000, sec, 0), scoped(rate("own", 1_000_000, sec, 0), "user")}
	if with, without := allocs(inTurn(l...)), allocs(steady(l...)); with != without {
		t.Errorf("%v allocations, %v without lines", with, without)
	}
}

func BenchmarkLines(b *testing.B) {
	for _, by := range []string{"", "user"} {
		b.Run("by="+by, func(b *testing.B) {
			p := steady(rate("all", 1_000_000_000, sec, 1<<30))
			p.Fair.By = by
			u := open(b, p, weir.Options{})
			c := of("a")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = weir.Do(background, u, c, func(context.Context) (int, error) { return 1, nil })
			}
		})
	}
}
