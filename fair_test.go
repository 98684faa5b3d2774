package weir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// inTurn returns a policy that shares limits fairly between users.
func inTurn(limits ...limit.Limit) weir.Policy {
	p := steady(limits...)
	p.Fair.By, p.MaxWait = "user", time.Minute
	return p
}

func of(user string) weir.Call { return weir.Call{Keys: map[string]string{"user": user}} }

// acquire acquires a permit, reports it, and returns how long that took.
func acquire(ctx context.Context, u *weir.Upstream, c weir.Call) (time.Duration, error) {
	begin := clock.System.Now()
	p, err := u.Acquire(ctx, c)
	took := since(begin)
	if err == nil {
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	return took, err
}

// insists acquires permits one after the other, and calls got for each. After a refusal it pauses, because no time
// passes in a bubble while a goroutine spins.
func insists(ctx context.Context, u *weir.Upstream, c weir.Call, got func()) {
	for ctx.Err() == nil {
		if _, err := acquire(ctx, u, c); err == nil {
			got()
		} else {
			pass(100 * ms)
		}
	}
}

// A tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name] += n
}

func (c *tally) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

func p99(waits []time.Duration) time.Duration {
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// light sends regular or irregular batches of calls, with or without a flood of another user, and returns their
// waits. It uses at most half of the limit.
func light(t *testing.T, batch int, flood, regular bool) (waits []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		r := chance(7)
		u := open(t, inTurn(rate("all", 20, sec, 1)), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var mu sync.Mutex
		send := func(note bool) {
			for range batch {
				wg.Go(func() {
					took, err := acquire(t.Context(), u, of("light"))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if note {
						waits = append(waits, took)
					}
				})
			}
			pass(time.Duration(batch) * (100*ms + time.Duration(r.Int64N(int64(100*ms)))))
		}
		if regular {
			for range 20 {
				send(false)
			}
		}
		if flood {
			for range 50 * batch {
				wg.Go(func() { insists(ctx, u, of("flood"), func() {}) })
			}
		}
		pass(3 * sec)
		for range 300 / batch {
			send(true)
		}
		cancel()
		wg.Wait()
	})
	return waits
}

// A call's own duration would be added to both waits, and would make them only more alike.
func TestAFloodMovesNobodyElse(t *testing.T) {
	for _, batch := range []int{2, 3, 10} {
		for _, regular := range []bool{false, true} {
			alone, among := p99(light(t, batch, false, regular)), p99(light(t, batch, true, regular))
			t.Logf("%d at once: p99 of the wait is %v alone, %v beside a flood", batch, alone, among)
			if alone < 50*ms || among > 2*alone {
				t.Errorf("%d at once: p99 of the wait is %v alone and %v beside a flood, want twice as much at most", batch, alone, among)
			}
		}
	}
}

// A single call goes at the next turn, as if there were no other user.
func TestAFloodTakesATurnOfSingleCallsAtMost(t *testing.T) {
	if longest := slices.Max(light(t, 1, true, true)); longest > 50*ms {
		t.Errorf("a call waited %v, want a turn of 50ms at most", longest)
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

// A call that waits for its own limit does not delay other calls. Neither does another operation with its own limit.
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

// Each of many users delays its own flood at its own limit, and they share the common limit.
func TestOwnLimitsAndOneOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 20, sec, 5), scoped(rate("own", 5, sec, 10), "user")), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var got tally
		var wg sync.WaitGroup
		for i := range 200 {
			name := fmt.Sprint(i % 10)
			wg.Go(func() { insists(ctx, u, of(name), func() { got.add(name, 1) }) })
		}
		pass(30 * sec)
		n, all := slices.Sorted(maps.Values(got.all())), 0
		for _, n := range n {
			all += n
		}
		if all < 590 || all > 605 || len(n) != 10 || n[9]-n[0] > 6 {
			t.Errorf("%d went in half a minute, of each user %v; want 600, and the same of each", all, n)
		}
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
		var got tally
		var wg sync.WaitGroup
		for user, cost := range map[string]int{"large": 8000, "small": 500} {
			for range 40 {
				c := of(user)
				c.Cost = map[string]int64{"tokens": int64(cost)}
				wg.Go(func() { insists(ctx, u, c, func() { got.add(user, cost) }) })
			}
		}
		pass(2 * time.Minute)
		n := got.all()
		if a, b := n["large"], n["small"]; max(a-b, b-a) > 2*8000+10_000 || a+b < 190_000 {
			t.Errorf("got %v of 200,000 tokens, want the same", n)
		}
		cancel()
		wg.Wait()
	})
}

func TestPriorityAndWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 100, sec, 1)), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var got tally
		var wg sync.WaitGroup
		for _, c := range []struct {
			user     string
			priority limit.Priority
			weight   int
		}{{"high", limit.High, 0}, {"a", limit.Normal, 3}, {"b", limit.Normal, 1}, {"low", limit.Low, 0}} {
			call := of(c.user)
			call.Priority, call.Weight = c.priority, c.weight
			for range 30 {
				wg.Go(func() { insists(ctx, u, call, func() { got.add(c.user, 1) }) })
			}
		}
		pass(21 * sec)
		n := got.all()
		for user, want := range map[string]int{"high": 1600, "a": 300, "b": 100, "low": 100} {
			if n := n[user]; n < want-5 || n > want+5 {
				t.Errorf("%s got %d, want %d", user, n, want)
			}
		}
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
		if want := "api default: rate_limited by limit all (1/s burst 1): retry after 5s, position 5 of 5 in the queue"; r.Error() != want {
			t.Errorf("got %q, want %q", r, want)
		}
		wg.Go(func() { _ = enter("a", time.Minute) })
		synctest.Wait()
		if r = refusal(t, enter("a", time.Minute)); r.Place != 6 || r.Waiting != 6 || since(begin) != 0 {
			t.Errorf("one too many: got %+v after %v", r, since(begin))
		}
		for i := range 3 { // no prediction can include the calls that come in between
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

// A pause prolongs the waits of calls that can wait, and ends the other waits.
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

// The limit does not know about a pause of a pool. Turns before the end of the pause must not all be used at its end.
func TestNobodyGoesAtOnceAfterAPauseOfAPool(t *testing.T) {
	for _, p := range []weir.Policy{steady(rate("all", 10, sec, 1)), inTurn(rate("all", 10, sec, 1))} {
		synctest.Test(t, func(t *testing.T) {
			p.MaxWait = time.Minute
			u := open(t, p, weir.Options{})
			c := of("a")
			c.Pool = "key"
			first, err := u.Acquire(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			begin := clock.System.Now()
			m := &weigher{rate: 10, burst: 1}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := acquire(t.Context(), u, c); err != nil {
						t.Error(err)
					}
					mu.Lock()
					m.grant(since(begin), 1)
					mu.Unlock()
				})
			}
			pass(50 * ms)
			first.Report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 5 * sec}})
			wg.Wait()
			if took := since(begin); m.broken != nil || took < 6900*ms || took > 7100*ms {
				t.Errorf("fair by %q: took %v, %v", p.Fair.By, took, m.broken)
			}
		})
	}
}

// No waiting call is forgotten when fairness is turned on or off.
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
		"":                                  {By: "user"},
		"fair: by \"\": want a scope":       {Longest: 3},
		"fair: weight -1 of priority high":  {By: "user", Weights: weir.PriorityWeights{High: -1}},
		"fair: weight 1001 of priority low": {By: "user", Weights: weir.PriorityWeights{Low: 1001}},
		"fair: longest -1: must not be":     {By: "user", Longest: -1},
		"fair: per flow -1: must not be ":   {By: "user", PerFlow: -1},
	} {
		err := weir.Policy{Fair: f}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", f, err, want)
		}
	}
	if got, want := (weir.Policy{Fair: weir.Fair{By: "user"}}).WithDefaults().Fair, (weir.Fair{By: "user", Weights: weir.PriorityWeights{High: 16, Normal: 4, Low: 1}, Longest: 10_000, PerFlow: 1_000}); got != want {
		t.Errorf("defaults are %+v", got)
	}
}

// A weigher checks grants: between any two instants at most the burst and the produced units may be granted.
type weigher struct {
	name        string
	rate, burst float64
	at          time.Duration // when the rate was set
	due         float64       // units produced until then
	n, lowest   float64
	any         bool
	broken      error
}

func (m *weigher) come(at time.Duration) float64 { return m.due + m.rate*(at-m.at).Seconds() }

func (m *weigher) change(at time.Duration, l limit.Limit) {
	m.due, m.at = m.come(at), at
	m.rate, m.burst = l.PerSecond(), max(m.burst, float64(l.Most()))
}

func (m *weigher) grant(at time.Duration, units int64) {
	come := m.come(at)
	if before := m.n - come; !m.any || before < m.lowest {
		m.lowest, m.any = before, true
	}
	m.n += float64(units)
	if over := m.n - come - m.lowest - m.burst; over > 1e-3 && m.broken == nil {
		m.broken = fmt.Errorf("%d units at %v are %v over %v/s burst %v", units, at, over, m.rate, m.burst)
	}
}

// With calls, waits, leavers, pauses, breakers and changes at random, every call ends in time, no limit is exceeded,
// and nothing leaks.
func TestPropertyOfLines(t *testing.T) {
	for seed := range seeds(250) {
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
	h := &history{u: open(t, p, weir.Options{})}
	h.set(t, p)
	var wg sync.WaitGroup
	for range 30 + r.IntN(60) {
		own := chance(r.Uint64())
		wg.Go(func() { h.call(t, own, seed, p.MaxWait) })
	}
	wg.Go(func() {
		own := chance(seed + 1<<40)
		for range own.IntN(6) {
			pass(time.Duration(own.Int64N(int64(sec))))
			h.set(t, changed(own, p))
			if own.IntN(3) == 0 {
				h.u.Breaker("").ForceOpen(h.u.Now(), 300*ms)
			}
		}
	})
	wg.Wait()
	for _, m := range h.all {
		if m.broken != nil {
			t.Errorf("seed %d: limit %s: %v", seed, m.name, m.broken)
		}
	}
	h.set(t, p)
	pass(time.Minute)
	for _, v := range h.u.Look(10).Limits {
		if v.Level.Left != v.Level.Full {
			t.Errorf("seed %d: after a minute limit %s has %d of %d for key %q", seed, v.Limit.Name, v.Level.Left, v.Level.Full, v.Key)
		}
	}
	if took, err := acquire(t.Context(), h.u, of("a")); took != 0 {
		t.Errorf("seed %d: after a minute a call waits %v: %v", seed, took, err)
	}
}

// changed returns the policy with other weights, or without fairness, and with limits that are changed or missing.
func changed(r *rand.Rand, p weir.Policy) weir.Policy {
	if p.Fair.Weights.Low = 1 + r.IntN(9); r.IntN(3) == 0 {
		p.Fair = weir.Fair{}
	}
	before := p.Limits
	p.Limits = nil
	for _, l := range before {
		switch r.IntN(4) {
		case 0:
			l.Amount = max(1, l.Amount*(1+r.Int64N(30))/10)
		case 1:
			if l.Burst > 0 {
				l.Burst = 1 + r.Int64N(2*l.Burst)
			}
		case 2:
			if r.IntN(2) == 0 {
				continue
			}
		}
		p.Limits = append(p.Limits, l)
	}
	return p
}

// A history is an upstream whose permits are checked against the limits that were in force when they were requested.
type history struct {
	u     *weir.Upstream
	mu    sync.Mutex
	force map[string]*kept // by name
	all   []*weigher
}

// A kept is a limit from when it comes into force until no limit has its name.
type kept struct {
	limit  limit.Limit
	meters map[string]*weigher // by key
}

// set puts a policy in force. The meters of a changed limit continue at its new rate, with the largest burst so far.
func (h *history) set(t *testing.T, p weir.Policy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.u.Now()
	before := h.force
	h.force = make(map[string]*kept)
	for _, l := range p.Limits {
		k := before[l.Name]
		if k == nil {
			k = &kept{meters: make(map[string]*weigher)}
		}
		k.limit = l
		for _, m := range k.meters {
			m.change(now, l)
		}
		h.force[l.Name] = k
	}
	set(t, h.u, p)
}

// judging returns the limits that apply to a call: a waiting call follows the limits in force.
func (h *history) judging(asked map[string]*kept) map[string]*kept {
	if now := h.inForce(); !maps.Equal(now, asked) {
		return now
	}
	return asked
}

// inForce returns the limits in force.
func (h *history) inForce() map[string]*kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.force
}

// grant checks a permit that was requested under these limits.
func (h *history) grant(limits map[string]*kept, c weir.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, k := range limits {
		key, n := "", int64(1)
		if k.limit.Scope != "" {
			key = c.Keys[k.limit.Scope]
		}
		if name == "tokens" {
			n = c.Cost[name]
		}
		m := k.meters[key]
		if m == nil {
			m = &weigher{name: name}
			m.change(h.u.Now(), k.limit)
			k.meters[key] = m
			h.all = append(h.all, m)
		}
		m.grant(h.u.Now(), n)
	}
}

// call makes one call of a history. Its caller may leave, and the call may fail.
func (h *history) call(t *testing.T, r *rand.Rand, seed uint64, longest time.Duration) {
	pass(time.Duration(r.Int64N(int64(3 * sec))))
	c := of(string(rune('a' + r.IntN(4))))
	c.Cost = map[string]int64{"tokens": r.Int64N(1000)}
	c.Priority, c.Weight = limit.Priority(r.IntN(3)-1), r.IntN(5)
	c.Pool = []string{"", "", "key"}[r.IntN(3)]
	patience := time.Duration(r.Int64N(int64(6 * sec)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if r.IntN(5) == 0 {
		time.AfterFunc(time.Duration(r.Int64N(int64(2*sec))), cancel)
	}
	start, limits := clock.System.Now(), h.inForce()
	permit, err := h.u.Acquire(ctx, c)
	if took := since(start); took > min(patience, longest) {
		t.Errorf("seed %d: who could wait %v and was let wait %v waited %v: %v", seed, patience, longest, took, err)
	}
	if err != nil {
		if r, ok := errors.AsType[*weir.Refusal](err); ok && (r.RetryAfter <= 0 || r.Place < 0 || r.Place > r.Waiting) {
			t.Errorf("seed %d: %+v", seed, r)
		}
		return
	}
	h.grant(h.judging(limits), c)
	pass(time.Duration(r.Int64N(int64(200 * ms))))
	o := outcome.Outcome{Class: outcome.OK}
	switch r.IntN(12) {
	case 0, 1:
		o.Class = outcome.Failed
	case 2:
		o.Class, o.Hint = outcome.Throttled, outcome.Hint{Said: true, After: time.Duration(r.Int64N(int64(sec)))}
	}
	permit.Report(o)
}

// A limit is used completely while there is demand, whatever the calls cost.
func TestLinesUseTheLimit(t *testing.T) {
	for seed := range seeds(10) {
		synctest.Test(t, func(t *testing.T) {
			r := chance(seed)
			tokens := rate("tokens", 1000, sec, 200)
			tokens.Unit = "tokens"
			p := inTurn(tokens, scoped(rate("own", 40, sec, 0), "user"), rate("all", 200, sec, 1))
			p.MaxWait = 2 * sec
			u := open(t, p, weir.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var used tally
			var wg sync.WaitGroup
			for i := range 40 {
				own := chance(r.Uint64())
				wg.Go(func() {
					for ctx.Err() == nil {
						c, n := of(fmt.Sprint(i%7)), 1+own.IntN(99)
						c.Cost = map[string]int64{"tokens": int64(n)}
						inner, stop := context.WithTimeout(ctx, time.Duration(own.Int64N(int64(4*sec))))
						if _, err := acquire(inner, u, c); err == nil {
							used.add("tokens", n)
						} else {
							pass(10 * ms)
						}
						stop()
					}
				})
			}
			pass(10 * sec)
			if n := used.all()["tokens"]; n < 9_700 || n > 10_200 {
				t.Errorf("seed %d: %d of 10000 tokens were used", seed, n)
			}
			cancel()
			wg.Wait()
		})
	}
}

// Frequent calls, each from another flow, overtake a waiting expensive call, and the limit is still used completely.
func TestYieldingLosesNothing(t *testing.T) {
	for _, burst := range []int64{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, inTurn(rate("all", 100, sec, burst)), weir.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var got tally
			m := &weigher{rate: 100, burst: float64(burst)}
			begin := clock.System.Now()
			grant := func(who string) {
				got.add(who, 1)
				got.mu.Lock()
				m.grant(since(begin), 1)
				got.mu.Unlock()
			}
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { insists(ctx, u, of("flood"), func() { grant("flood") }) })
			}
			for i := range 400 { // 40 per second
				wg.Go(func() {
					pass(time.Duration(i)*25*ms + time.Duration(i%7)*ms)
					if _, err := acquire(t.Context(), u, of(fmt.Sprint("visitor", i))); err == nil {
						grant("visitors")
					}
				})
			}
			pass(10*sec + 100*ms)
			if n := got.all(); n["visitors"] != 400 || n["visitors"]+n["flood"] < 1005 || m.broken != nil {
				t.Errorf("burst %d: got %v of 1010 in all, %v", burst, n, m.broken)
			}
			cancel()
			wg.Wait()
		})
	}
}

// Processes share a limit through a store. Each has its own queues.
func TestLinesInAFleet(t *testing.T) {
	for _, c := range []struct {
		rate         int64
		light, flood int     // callers in each process
		least        float64 // calls of the light user per call of the other one
	}{{50, 20, 20, 0.8}, {50, 3, 37, 0.8}, {500, 20, 40, 0.8}, {500, 2, 38, 0.25}} {
		synctest.Test(t, func(t *testing.T) {
			p := inTurn(rate("all", c.rate, sec, c.rate/5))
			p.MaxWait = 5 * sec
			all := joined(t, 3, p)
			ctx, cancel := context.WithCancel(t.Context())
			begin := clock.System.Now()
			m := &weigher{rate: float64(c.rate), burst: float64(c.rate / 5)}
			var got tally
			var wg sync.WaitGroup
			for i := range 3 * (c.light + c.flood) {
				user := "light"
				if i >= 3*c.light {
					user = "flood"
				}
				wg.Go(func() {
					insists(ctx, all[i%3], of(user), func() {
						got.add(user, 1)
						got.mu.Lock()
						m.grant(since(begin), 1)
						got.mu.Unlock()
					})
				})
			}
			pass(10 * sec)
			n := got.all()
			light, flood := float64(n["light"]), float64(n["flood"])
			if m.broken != nil || light+flood < 9.5*float64(c.rate) || light < c.least*flood || flood < 0.8*light {
				t.Errorf("%+v: got %v, %v", c, n, m.broken)
			}
			cancel()
			wg.Wait()
		})
	}
}

// A caller that retries without a pause, and is refused each time, does not starve others. The test uses real time,
// because no time would pass in a bubble.
func TestWhoSpinsStarvesNobody(t *testing.T) {
	p := inTurn(rate("all", 500, sec, 1))
	p.Fair.PerFlow = 5
	u := open(t, p, weir.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var wg sync.WaitGroup
	for range 8 { // three too many
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = acquire(ctx, u, of("spins"))
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if permit, d := try(u, of("tries")); d.Allowed {
				permit.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
	})
	for range 20 {
		if _, err := acquire(ctx, u, of("other")); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
}

// For a call that need not wait, queues cost nothing.
func TestLinesAllocateNothingForWhoNeedNotWait(t *testing.T) {
	allocs := func(p weir.Policy) float64 {
		u := open(t, p, weir.Options{})
		c := of("a")
		return testing.AllocsPerRun(1000, func() {
			_, _ = weir.Do(background, u, c, func(context.Context) (int, error) { return 1, nil })
		})
	}
	l := []limit.Limit{rate("all", 1_000_000, sec, 0), scoped(rate("own", 1_000_000, sec, 0), "user")}
	if with, without := allocs(inTurn(l...)), allocs(steady(l...)); with != without || with > 1 {
		t.Errorf("%v allocations, %v without lines, want 1: a permit that moves to the heap is one more", with, without)
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

// Units that a call did not use are available to waiting calls immediately.
func TestWhatComesBackIsHeardInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := rate("tokens", 1000, time.Minute, 1000)
		tokens.Unit = "tokens"
		u := open(t, inTurn(tokens), weir.Options{})
		c := of("a")
		c.Cost = map[string]int64{"tokens": 1000}
		first, err := u.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(1300*ms, func() {
			first.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 100}})
		})
		c.Cost = map[string]int64{"tokens": 900}
		if took, err := acquire(t.Context(), u, c); err != nil || took != 1300*ms {
			t.Errorf("waited %v, %v", took, err)
		}
	})
}

// Calls that need two limits proceed among calls that need one of them.
func TestCallsWithTwoLimitsDoNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rate("a", 100, sec, 1), rate("b", 100, sec, 1)
		a.Operations, b.Operations = []string{"a", "both"}, []string{"b", "both"}
		u := open(t, inTurn(a, b), weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var got tally
		var wg sync.WaitGroup
		for _, op := range []string{"a", "b", "both"} {
			for range 10 {
				c := of("user")
				c.Operation = op
				wg.Go(func() { insists(ctx, u, c, func() { got.add(op, 1) }) })
			}
		}
		pass(20 * sec)
		n := got.all()
		if n["both"] < 400 || n["a"]+n["both"] < 1700 || n["b"]+n["both"] < 1700 {
			t.Errorf("in 20s at 100/s of each limit %v went", n)
		}
		cancel()
		wg.Wait()
	})
}
