package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

const manyCases = 1500

// A scenario is one call with predetermined results of its attempts and a configuration.
type scenario struct {
	conf     retry.Config
	call     weir.Call
	outcomes []outcome.Outcome
	gated    bool // with a limit and a breaker
	seed     uint64
}

// A record describes the run of a scenario.
type record struct {
	sent     []time.Duration // when each attempt began
	ended    []time.Duration
	waits    []time.Duration // reported by Retried
	decided  int
	reported int
	book     ledger
	left     int64
	err      error
	last     *bad
}

// plenty is the burst of a scenario's limit, which gains almost nothing during the run.
const plenty = 100

func (s scenario) run(t testing.TB) *record {
	c, rec := &leap{}, &record{}
	p := weir.Policy{
		// Without a budget the model of a call needs no history. Another property covers budgets.
		Retry: s.conf, Budget: retry.BudgetConfig{Off: true}, Breaker: breaker.Config{Off: !s.gated},
		Timeouts: weir.Timeouts{Attempt: -1, Call: -1},
		MaxPause: time.Second, // shorter than the least backoff that follows a longer hint
	}
	p.Limits = []limit.Limit{rate("all", 1, 300*time.Hour, plenty)}
	p.MaxWait = 10000 * time.Hour
	u := open(t, p, weir.Options{
		Clock: c, Rand: chance(s.seed), Gates: []weir.Gate{&rec.book},
		Events: weir.Events{
			Decided: func(weir.Decided) { rec.decided++ },
			Ended:   func(weir.Ended) { rec.reported++ },
			Retried: func(e weir.Retried) { rec.waits = append(rec.waits, e.After) },
		},
	})
	_, rec.err = weir.Do(background, u, s.call, func(context.Context) (int, error) {
		rec.sent = append(rec.sent, c.At)
		c.At += 7 * ms
		o := s.outcomes[min(len(rec.sent), len(s.outcomes))-1]
		rec.ended = append(rec.ended, c.At)
		if o.Class == outcome.OK {
			return 1, nil
		}
		rec.last = &bad{O: o}
		return 0, rec.last
	})
	rec.left = left(t, u, "all", "")
	return rec
}

func (s scenario) outcome(i int) outcome.Outcome { return s.outcomes[min(i, len(s.outcomes)-1)] }

// again reports whether the outcome of an attempt allows another one, without regard to the number of attempts, hints
// and deadlines.
func (s scenario) again(o outcome.Outcome) bool {
	worth := o.Retryable() || o.Hint.Advice == outcome.Again
	return worth && o.Class != outcome.OK && o.Class != outcome.Canceled && o.Hint.Advice != outcome.NotAgain && !o.Hint.Quota &&
		(s.call.Safe || o.Undone)
}

// bounds returns the bounds of the wait after attempt i, from 0, without the hint. prev is the wait before it.
func (s scenario) bounds(i int, prev time.Duration) (least, most time.Duration) {
	c := s.conf.WithDefaults()
	base := c.Base
	if s.outcome(i).Class == outcome.Throttled {
		base = c.ThrottleBase
	}
	ceiling := base
	for range i {
		ceiling = min(2*ceiling, c.Cap)
	}
	ceiling = min(ceiling, c.Cap)
	switch c.Jitter {
	case retry.NoJitter:
		return ceiling, ceiling
	case retry.EqualJitter:
		return ceiling / 2, ceiling
	case retry.DecorrelatedJitter:
		return min(base, c.Cap), max(min(base, c.Cap), min(c.Cap, 3*max(prev, base)))
	case retry.RangeJitter:
		return time.Duration(float64(ceiling) * c.Low), time.Duration(float64(ceiling)*c.High) + 1
	case retry.AddedJitter:
		return ceiling, ceiling + c.Added
	}
	return 0, ceiling
}

// heldAfter is the number of failures in a row after which retries are held back; see retry.Holdoff.
const heldAfter = 10

// check checks a record against all promises of Do for one call.
func (s scenario) check(r *record) error {
	n := len(r.sent)
	most := s.conf.WithDefaults().Attempts
	lastOut := s.outcome(n - 1)
	var prev time.Duration
	for i := range n - 1 {
		o := s.outcome(i)
		if !s.again(o) {
			return fmt.Errorf("(a) attempt %d was repeated after %+v, safe %v", i+1, o, s.call.Safe)
		}
		wait := r.sent[i+1] - r.ended[i]
		least, longest := s.bounds(i, prev)
		if o.Hint.Said && o.Hint.After > longest {
			least, longest = o.Hint.After, o.Hint.After+o.Hint.After/10
		} else if o.Hint.Said {
			least, longest = max(least, o.Hint.After), max(longest, o.Hint.After+o.Hint.After/10)
		}
		held := i+1 >= heldAfter // it may have replaced a later one
		for j := i + 1; held && j < most; j++ {
			_, later := s.bounds(j, longest)
			longest += later
		}
		if wait < least && !held || wait > longest || r.waits[i] != wait && !held {
			return fmt.Errorf("(b) waited %v after attempt %d, said %v; want %v to %v; outcome %+v", wait, i+1, r.waits[i], least, longest, o)
		}
		prev = wait
	}
	hintTooLong := lastOut.Hint.Said && lastOut.Hint.After > time.Minute
	held := 0 // without any success, some of the remaining retries are not made
	if e, ok := errors.AsType[*retry.GaveUpError](r.err); ok {
		held = e.HeldBack
	}
	stop := n+held == most || !s.again(lastOut) || hintTooLong
	if n+held > most || !stop {
		return fmt.Errorf("(c) %d attempts of %d, %d held back, the last ended with %+v", n, most, held, lastOut)
	}
	if err := s.checkError(r, n, lastOut); err != nil {
		return fmt.Errorf("(d) %w", err)
	}
	unsent := 0
	for i := range n {
		if s.outcome(i).Unsent {
			unsent++
		}
	}
	if r.decided != n || r.left != int64(plenty-n+unsent) {
		return fmt.Errorf("(g) %d decisions and %d tokens left after %d attempts, %d unsent", r.decided, r.left, n, unsent)
	}
	if err := r.book.Check(); err != nil || r.book.Admitted != n || r.reported != n {
		return fmt.Errorf("(j) %d attempts, %d admitted, %d reports, %v", n, r.book.Admitted, r.reported, err)
	}
	return nil
}

func (s scenario) checkError(r *record, n int, lastOut outcome.Outcome) error {
	if lastOut.Class == outcome.OK {
		return r.err
	}
	if !errors.Is(r.err, r.last) {
		return fmt.Errorf("%v hides the last error %v", r.err, r.last)
	}
	g, ok := errors.AsType[*retry.GaveUpError](r.err)
	plain := lastOut.Class == outcome.Canceled || n == 1 && !ok
	if plain {
		if r.err != error(r.last) || s.again(lastOut) {
			return fmt.Errorf("got %v after one attempt that ended with %+v", r.err, lastOut)
		}
		return nil
	}
	if !ok || g.Attempts != n || g.Upstream != "api" || g.Operation != "default" || g.Why == nil || !errors.Is(r.err, g.Why) ||
		g.Last != error(r.last) || g.Outcome.Code != lastOut.Code || g.Elapsed < r.ended[n-1] || g.Elapsed > r.ended[n-1] && g.HeldBack == 0 {
		return fmt.Errorf("got %+v after %d attempts", r.err, n)
	}
	return nil
}

func randomOutcome(r *rand.Rand) outcome.Outcome {
	o := outcome.Outcome{Class: outcome.Classes[r.IntN(len(outcome.Classes))], Code: fmt.Sprint("code ", r.IntN(9)), Undone: r.IntN(2) == 0}
	o.Unsent = o.Class == outcome.Failed && o.Undone && r.IntN(2) == 0
	if o.Class == outcome.OK {
		return outcome.Outcome{Class: outcome.OK}
	}
	switch r.IntN(8) {
	case 0:
		o.Hint = outcome.Hint{Said: true, After: time.Duration(r.Int64N(int64(sec)))}
	case 1:
		o.Hint = outcome.Hint{Said: true, After: time.Duration(r.Int64N(int64(3 * time.Minute)))}
	case 2:
		o.Hint.Advice = outcome.Advice(r.IntN(3))
	case 3:
		o.Hint.Quota = true
	}
	return o
}

func randomScenario(seed uint64) scenario {
	r := chance(seed)
	base := time.Duration(1 + r.Int64N(int64(2*sec)))
	s := scenario{
		conf: retry.Config{Attempts: 1 + r.IntN(9), Base: base, Cap: base + time.Duration(r.Int64N(int64(20*sec))), Jitter: retry.Jitter(r.IntN(6))},
		call: weir.Call{Safe: r.IntN(4) > 0}, gated: r.IntN(2) == 0, seed: seed,
	}
	if r.IntN(2) == 0 {
		s.conf.ThrottleBase = base + time.Duration(r.Int64N(int64(s.conf.Cap-base)+1))
	}
	for range 1 + r.IntN(10) {
		o := randomOutcome(r)
		if r.IntN(3) > 0 {
			o = randomOutcome(r)
			o.Class, o.Hint.Advice, o.Hint.Quota = []outcome.Class{outcome.Failed, outcome.Throttled, outcome.Unknown}[r.IntN(3)], 0, false
		}
		s.outcomes = append(s.outcomes, o)
	}
	return s
}

// scenarios runs random scenarios and counts their properties.
func scenarios(t *testing.T, change func(*scenario), note func(scenario, *record)) {
	for seed := range uint64(manyCases) {
		s := randomScenario(seed)
		if change != nil {
			change(&s)
		}
		r := s.run(t)
		if err := s.check(r); err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, s)
		}
		note(s, r)
	}
}

func TestPropertyOnlyRetryableOutcomesAreRepeated(t *testing.T) {
	repeated, not := 0, 0
	scenarios(t, nil, func(s scenario, r *record) {
		repeated += len(r.sent) - 1
		if len(r.sent) < s.conf.Attempts && !s.again(s.outcome(len(r.sent)-1)) {
			not++
		}
	})
	if repeated < manyCases || not < manyCases/10 {
		t.Errorf("%d repeated, %d not: too few to prove much", repeated, not)
	}
}

func TestPropertyDelaysAreWithinBoundsAndNeverUnderTheHint(t *testing.T) {
	hinted := 0
	scenarios(t, func(s *scenario) { s.call.Safe = true }, func(s scenario, r *record) {
		for i := range len(r.sent) - 1 {
			if h := s.outcome(i).Hint; h.Said {
				hinted++
				if wait := r.sent[i+1] - r.ended[i]; wait < h.After {
					t.Fatalf("seed %d: waited %v, the hint was %v", s.seed, wait, h.After)
				}
			}
		}
	})
	if hinted < manyCases/4 {
		t.Errorf("%d waits with a hint: too few to prove much", hinted)
	}
}

func TestPropertyAttemptsAreAsConfigured(t *testing.T) {
	scenarios(t, func(s *scenario) {
		s.call.Safe = true
		for i := range s.outcomes {
			s.outcomes[i] = outcome.Outcome{Class: []outcome.Class{outcome.Failed, outcome.Throttled, outcome.Unknown}[i%3]}
		}
	}, func(s scenario, r *record) {
		if len(r.sent) != s.conf.Attempts || !errors.Is(r.err, retry.ErrAttempts) {
			t.Fatalf("seed %d: %d attempts of %d, %v", s.seed, len(r.sent), s.conf.Attempts, r.err)
		}
	})
}

func TestPropertyErrorIsComplete(t *testing.T) {
	gaveUp, plain := 0, 0
	scenarios(t, nil, func(s scenario, r *record) {
		if _, ok := errors.AsType[*retry.GaveUpError](r.err); ok {
			gaveUp++
		} else if r.err != nil {
			plain++
		}
	})
	if gaveUp < manyCases/4 || plain < manyCases/20 {
		t.Errorf("%d gave up, %d plain: too few to prove much", gaveUp, plain)
	}
}

func TestPropertyLimitIsAskedBeforeEveryAttempt(t *testing.T) {
	attempts := 0
	scenarios(t, nil, func(_ scenario, r *record) { attempts += r.decided })
	if attempts < 2*manyCases {
		t.Errorf("%d attempts: too few to prove much", attempts)
	}
	for seed := range uint64(manyCases) {
		r := chance(seed)
		tokens, n := int64(1+r.IntN(5)), 1+r.IntN(9)
		p := steady(rate("all", 1, time.Hour, tokens))
		p.Retry.Attempts, p.MaxWait = n, -1
		a := answers(errFailed)
		_, err := do(background, open(t, p, weir.Options{Clock: &leap{}}), a)
		if want := min(int(tokens), n); a.n != want || gaveUp(t, err).Attempts != want {
			t.Fatalf("seed %d: %d attempts with %d tokens and %d attempts allowed", seed, a.n, tokens, n)
		}
	}
}

func TestPropertyEveryPermitIsReportedOnce(t *testing.T) {
	for seed := range seeds(500) {
		synctest.Test(t, func(t *testing.T) { reportedOnce(t, seed) })
	}
}

// reportedOnce makes calls that end in every way: answers, errors, panics, refusals, timeouts and leaving callers.
func reportedOnce(t *testing.T, seed uint64) {
	r := chance(seed)
	first, second := &ledger{}, &ledger{}
	p := steady(rate("all", int64(1+r.IntN(20)), sec, int64(1+r.IntN(5))))
	p.Breaker = breaker.Config{Failures: 1 + r.IntN(4), Open: sec, Successes: 1, ProbeTimeout: time.Hour}
	p.MaxWait, p.Timeouts.Attempt = sec, 500*ms
	u := open(t, p, weir.Options{Gates: []weir.Gate{first, sometimes{r}, second}, Rand: r})
	for range 30 {
		ctx, cancel := context.WithTimeout(background, time.Duration(r.Int64N(int64(2*sec)))+1)
		kind := r.IntN(6)
		func() {
			defer func() { _ = recover() }()
			_, _ = weir.Do(ctx, u, weir.Call{Safe: r.IntN(2) == 0}, func(ctx context.Context) (int, error) {
				switch kind {
				case 0:
					panic("in the middle")
				case 1:
					return 0, errFailed
				case 2:
					<-ctx.Done()
					return 0, ctx.Err()
				case 3:
					cancel()
					return 0, nil
				case 4:
					return 0, errThrottled
				}
				return 1, nil
			})
		}()
		cancel()
		pass(time.Duration(r.Int64N(int64(sec))))
	}
	if err := errors.Join(first.Check(), second.Check()); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	pass(time.Hour)
	if v := u.Look(0); v.Breakers[0].Probe || v.Limits[0].Level.Left != v.Limits[0].Level.Full {
		t.Fatalf("seed %d: something is held after all: %+v", seed, v)
	}
}

// sometimes is a gate that refuses at random.
type sometimes struct{ r *rand.Rand }

func (s sometimes) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	if s.r.IntN(10) == 0 {
		return nil, &weir.Refusal{Reason: weir.ConcurrencyLimited}
	}
	return nil, nil
}

// Whatever happens to a limit, its remaining units stay between zero and the burst.
func TestPropertyTokensStayWithinTheBurst(t *testing.T) {
	for seed := range seeds(200) {
		r, c := chance(seed), &leap{}
		l := func() limit.Limit {
			l := scoped(rate("tokens", 1+r.Int64N(1000), time.Duration(1+r.Int64N(int64(time.Minute))), 1+r.Int64N(100)), "tenant")
			l.Unit = "tokens"
			return l
		}
		p := steady(l())
		u := open(t, p, weir.Options{Clock: c})
		var out []*weir.Permit
		for step := range 100 {
			switch r.IntN(8) {
			default:
				call := weir.Call{Keys: map[string]string{"tenant": string(rune('a' + r.IntN(3)))}, Cost: map[string]int64{"tokens": r.Int64N(60)}}
				if permit, d := try(u, call); d.Allowed {
					out = append(out, permit)
				}
			case 0, 1, 2:
				if n := len(out); n > 0 {
					o := randomOutcome(r)
					if r.IntN(2) == 0 {
						o.Usage = map[string]int64{"tokens": r.Int64N(120)}
					}
					out[n-1].Report(o)
					out = out[:n-1]
				}
			case 3:
				c.At += time.Duration(r.Int64N(int64(sec)))
			case 4:
				if r.IntN(5) == 0 {
					p.Limits[0] = l()
					set(t, u, p)
				}
			}
			for _, v := range u.Look(10).Limits {
				if v.Level.Left < 0 || v.Level.Left > v.Level.Full || v.Level.Full != v.Limit.Full() {
					t.Fatalf("seed %d, step %d: key %q has %+v of %v", seed, step, v.Key, v.Level, v.Limit)
				}
			}
		}
	}
}

// A meter checks that grants stay within burst + rate*t in every window, in one pass: with C grants so far, C -
// rate*t never exceeds its lowest value just before a grant by more than the burst.
type meter struct {
	mu     sync.Mutex
	rate   float64 // per second
	burst  float64
	n      float64
	lowest float64
	broken error
}

func (m *meter) grant(at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := m.rate * at.Seconds()
	if before := m.n - due; m.n == 0 || before < m.lowest {
		m.lowest = before
	}
	m.n++
	if over := m.n - due - m.lowest - m.burst; over > 1e-6 && m.broken == nil {
		m.broken = fmt.Errorf("grant %v at %v is %v over the limit", m.n, at, over)
	}
}

func TestPropertyNoOverConsumption(t *testing.T) {
	for seed := range seeds(200) {
		synctest.Test(t, func(t *testing.T) {
			r := chance(seed)
			amount, burst := 1+r.Int64N(50), 1+r.Int64N(10)
			p := steady(rate("all", amount, sec, burst), rate("roomy", 1000, sec, 0))
			p.MaxWait = 2 * sec
			u := open(t, p, weir.Options{})
			begin := clock.System.Now()
			m := &meter{rate: float64(amount), burst: float64(burst)}
			var wg sync.WaitGroup
			for range 2 + r.IntN(8) {
				own := chance(r.Uint64())
				wg.Go(func() { consume(u, m, begin, own) })
			}
			wg.Wait()
			if m.broken != nil {
				t.Fatalf("seed %d: %v (%d/s burst %d)", seed, m.broken, amount, burst)
			}
		})
	}
}

// consume makes calls. Some have deadlines that cannot be met, and some fail.
func consume(u *weir.Upstream, m *meter, begin time.Duration, r *rand.Rand) {
	for range 20 {
		ctx, cancel := context.WithTimeout(background, time.Duration(r.Int64N(int64(3*sec))))
		_, _ = weir.Do(ctx, u, weir.Call{Safe: true}, func(context.Context) (int, error) {
			m.grant(since(begin))
			if r.IntN(4) == 0 {
				return 0, errFailed
			}
			return 1, nil
		})
		cancel()
		pass(time.Duration(r.Int64N(int64(300 * ms))))
	}
}

// Calls of one key do not affect another key, if the breaker is by key too.
func TestPropertyKeysAreIndependent(t *testing.T) {
	for seed := range seeds(200) {
		r, c := chance(seed), &leap{}
		l := scoped(rate("tenant", 1+r.Int64N(20), sec, 1+r.Int64N(5)), "tenant")
		l.Adaptive = adaptive.Config{On: r.IntN(2) == 0}
		keys := []string{"a", "b", "c"}
		p := steady(l)
		p.BreakerScope = "tenant"
		together := open(t, p, weir.Options{Clock: c})
		apart := make(map[string]*weir.Upstream)
		for _, k := range keys {
			apart[k] = open(t, p, weir.Options{Clock: c})
		}
		for step := range 150 {
			c.At += time.Duration(r.Int64N(int64(100 * ms)))
			k := keys[r.IntN(len(keys))]
			call := weir.Call{Keys: map[string]string{"tenant": k}}
			p1, d1 := try(together, call)
			p2, d2 := try(apart[k], call)
			if d1.Allowed != d2.Allowed || d1.RetryAfter != d2.RetryAfter || d1.Reason != d2.Reason {
				t.Fatalf("seed %d, step %d: key %s gets %+v among others and %+v alone", seed, step, k, d1, d2)
			}
			o := randomOutcome(r)
			p1.Report(o)
			p2.Report(o)
		}
	}
}

// Attempts are at most the first attempts, their share of retries, and the floor.
func TestPropertyRetriesAreWithinTheBudget(t *testing.T) {
	for seed := range seeds(200) {
		r, c := chance(seed), &leap{}
		p := steady()
		p.Budget = retry.BudgetConfig{Share: 0.01 + r.Float64(), Floor: 0.1 + 5*r.Float64(), Window: sec + time.Duration(r.Int64N(int64(20*sec)))}
		p.Retry.Attempts, p.Retry.Base = 1+r.IntN(9), time.Duration(1+r.Int64N(int64(100*ms)))
		p.Timeouts.Call = -1
		u := open(t, p, weir.Options{Clock: c, Rand: r})
		failing, calls, attempts := r.Float64(), 0, 0
		for range 100 {
			calls++
			_, _ = weir.Do(background, u, weir.Call{Safe: true}, func(context.Context) (int, error) {
				attempts++
				if r.Float64() < failing {
					return 0, errFailed
				}
				return 1, nil
			})
			c.At += time.Duration(r.ExpFloat64() * float64(200*ms))
		}
		b := p.Budget
		most := float64(calls)*(1+b.Share) + b.Floor*(c.At+b.Window).Seconds()
		if float64(attempts) > most+1e-9 {
			t.Fatalf("seed %d: %d attempts of %d calls in %v, want at most %.1f by %+v", seed, attempts, calls, c.At, most, b)
		}
	}
}
