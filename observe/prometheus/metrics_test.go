package weirprom

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// still is a clock that only advances when it is set.
type still struct {
	weir.Clock
	mu  sync.Mutex
	now time.Duration
}

func (c *still) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *still) Sleep(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += max(0, d)
	return nil
}

func (c *still) Deadline(context.Context) (at time.Duration, ok bool) { return 0, false }

func perSecond(name, scope string, n int64) limit.Limit {
	return limit.Limit{Name: name, Scope: scope, Rate: bucket.Rate{Amount: n, Per: time.Second}}
}

func newUpstream(t testing.TB, name string, p weir.Policy, o weir.Options) *weir.Upstream {
	t.Helper()
	u, err := weir.New(name, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func try(u *weir.Upstream, c weir.Call) (*weir.Permit, weir.Decision) {
	p := new(weir.Permit)
	return p, u.Try(c, p)
}

// everything returns metrics that have received every kind of event and read every kind of count.
func everything(t testing.TB) (*Metrics, *prometheus.Registry) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	one := perSecond("put", "", 1)
	one.Burst, one.Operations = 1, []string{"put"}
	u := newUpstream(t, "s3", weir.Policy{
		Shadow: []limit.Limit{{Name: "tried", Rate: bucket.Rate{Amount: 1, Per: time.Second}}},
		Limits: []limit.Limit{one, {Name: "day", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}, inDollars, {Name: "tenant", Scope: "tenant", Labels: true, Rate: bucket.Rate{Amount: 1000, Per: time.Second}}}, Concurrency: weir.Concurrency{Limit: 7},
	}, weir.Options{Events: m.Events(), Clock: &still{Clock: clock.System, now: time.Hour}})
	m.Watch(u)
	for _, c := range outcome.Classes {
		p, err := u.Acquire(t.Context(), weir.Call{Operation: "put", Keys: map[string]string{"tenant": "acme"}})
		if err != nil {
			t.Fatal(err)
		}
		try(u, weir.Call{Operation: "put"})
		p.Report(outcome.Outcome{Class: c})
	}
	_, _ = weir.Do(t.Context(), u, weir.Call{Operation: "put", Cost: map[string]int64{limit.Requests: 2}}, func(context.Context) (int, error) { return 0, nil })
	again := u.Begin(t.Context(), weir.Call{Safe: true})
	for class := outcome.Throttled; again.Next(); class = outcome.OK {
		again.Report(outcome.Outcome{Class: class}, nil)
	}
	s, e := weir.Subject{Upstream: "s3", Operation: "put"}, m.Events()
	e.Violated(weir.Violation{Subject: s, Levels: []weir.LimitLevel{{Rule: perSecond("put", "", 10)}}})
	for _, c := range outcome.Classes {
		e.Retried(weir.Retried{Subject: s, Outcome: outcome.Outcome{Class: c}})
	}
	e.HeldBack(weir.HeldBack{Subject: s})
	m.JobFailedOpen("s3")
	e.GaveUp(weir.GaveUp{Subject: s, Why: retry.ErrAttempts})
	e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{To: breaker.Open}})
	e.Paused(weir.PauseEvent{Subject: s, Limit: "put", By: weir.ByHint})
	e.Resumed(weir.PauseEvent{Subject: s, Limit: "put", By: weir.ByHand})
	e.Damaged(weir.DamageEvent{Upstream: "s3", Err: errors.New("no pauses")})
	e.Paced(weir.PaceEvent{Subject: s, Limit: "put", Class: outcome.Throttled})
	e.Paced(weir.PaceEvent{Subject: s, Limit: "put", Class: outcome.OK})
	return m, reg
}

func TestNamesFollowThePrometheusRules(t *testing.T) {
	_, reg := everything(t)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsAreServed(t *testing.T) {
	_, reg := everything(t)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`weir_decisions_total{decision="rate_limited",limit="put",operation="put",upstream="s3"} 7`,
		`weir_decisions_total{decision="waited",limit="put",operation="put",upstream="s3"} 5`,
		`weir_decisions_total{decision="allowed",limit="",operation="put",upstream="s3"} 1`,
		`weir_attempt_duration_seconds_bucket{class="throttled",operation="put",upstream="s3",le="0.001"} 1`,
		`weir_calls_total{operation="put",result="refused",upstream="s3"} 1`,
		`weir_limit_configured_rate{limit="put",upstream="s3"} 1`,
		`weir_breakers{state="closed",upstream="s3"} 1`,
		`weir_in_flight_bound{operation="",upstream="s3"} 7`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("%s is not in\n%s", want, w.Body)
		}
	}
}

func TestNewTwicePanicsAsMustRegisterDoes(t *testing.T) {
	reg := prometheus.NewRegistry()
	New(reg)
	New(nil)
	defer func() {
		if recover() == nil {
			t.Error("the same metrics were registered twice")
		}
	}()
	New(reg)
}

// value returns the value of a series, identified by its name and its label values in the order of the label names. It returns -1
// if there is no such series.
func value(t testing.TB, reg prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(got, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func check(t testing.TB, reg prometheus.Gatherer, want float64, name string, labels ...string) {
	t.Helper()
	if got := value(t, reg, name, labels...); got != want {
		t.Errorf("%s%v is %v, want %v", name, labels, got, want)
	}
}

func TestGaugesShowTheWorstKey(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	u := newUpstream(t, "api", weir.Policy{
		Limits: []limit.Limit{
			perSecond("tenant", "tenant", 10),
			perSecond("all", "", 100),
		},
	}, weir.Options{Clock: c})
	m.Watch(u)
	check(t, reg, 10, "weir_limit_units_remaining", "tenant", "api") // no calls yet
	check(t, reg, 0, "weir_limit_keys", "tenant", "api")

	take := func(tenant string, n int) {
		for range n {
			p, d := try(u, weir.Call{Keys: map[string]string{"tenant": tenant}})
			if !d.Allowed {
				t.Fatalf("%s: %+v", tenant, d)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
	}
	take("a", 3)
	take("b", 7)
	check(t, reg, 3, "weir_limit_units_remaining", "tenant", "api")
	check(t, reg, 90, "weir_limit_units_remaining", "all", "api")
	check(t, reg, 100, "weir_limit_units_max", "all", "api")
	check(t, reg, 2, "weir_limit_keys", "tenant", "api")
	check(t, reg, 0, "weir_limit_keys", "all", "api")
	check(t, reg, float64(u.Look(0).RetriesLeft), "weir_retry_budget_remaining", "api")

	p, _ := try(u, weir.Call{Keys: map[string]string{"tenant": "b"}})
	p.Report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 4 * time.Second}})
	check(t, reg, 4, "weir_pause_remaining_seconds", "tenant", "", "api")
	c.now += time.Second
	check(t, reg, 3, "weir_pause_remaining_seconds", "all", "", "api")
	c.now += time.Minute
	check(t, reg, 0, "weir_pause_remaining_seconds", "all", "", "api")
	check(t, reg, 10, "weir_limit_units_remaining", "tenant", "api")
}

// inDollars is a budget of 20 dollars for each user.
var inDollars = limit.Limit{Name: "money", Unit: limit.USD, Scope: "user", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 20_000_000, Per: 24 * time.Hour}}

// The gauge shows the key that spent most. Held amounts are not spent, and a refusal is counted by limit.
func TestBudgetsAreExportedInDollars(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{inDollars}}, weir.Options{Clock: c, Events: m.Events()})
	m.Watch(u)
	check(t, reg, 0, "weir_budget_spent_dollars", "money", "api")
	check(t, reg, 0, "weir_decisions_total", "quota_exhausted", "money", "default", "api")
	call := func(user string, held int64) (*weir.Permit, weir.Decision) {
		return try(u, weir.Call{Keys: map[string]string{"user": user}, Cost: map[string]int64{limit.USD: held, limit.USDMost: held}})
	}
	for user, cost := range map[string]int64{"a": 2_500_000, "b": 16_250_000} {
		p, d := call(user, 5_000_000)
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{limit.USD: cost}})
	}
	call("a", 17_000_000) // held until the end
	check(t, reg, 20, "weir_budget_dollars", "money", "api")
	check(t, reg, 16.25, "weir_budget_spent_dollars", "money", "api")
	if _, d := call("b", 5_000_000); d.Reason != weir.QuotaExhausted {
		t.Errorf("%+v", d)
	}
	check(t, reg, 1, "weir_decisions_total", "quota_exhausted", "money", "default", "api")
}

func TestCurrentRateFollowsWhatWasLearnt(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	l := perSecond("put", "tenant", 100)
	l.Adaptive = adaptive.Config{On: true, Start: 100}
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{l}}, weir.Options{Clock: c, Events: m.Events()})
	m.Watch(u)
	for _, tenant := range []string{"a", "b"} {
		p, _ := try(u, weir.Call{Keys: map[string]string{"tenant": tenant}})
		class := outcome.OK
		if tenant == "b" {
			class = outcome.Throttled
		}
		c.now += time.Millisecond
		p.Report(outcome.Outcome{Class: class})
	}
	check(t, reg, 100, "weir_limit_configured_rate", "put", "api")
	if got := value(t, reg, "weir_limit_current_rate", "put", "api"); got <= 0 || got > 70 {
		t.Errorf("current rate %v, want that of the tenant who was throttled, at most 70", got)
	}
	check(t, reg, 1, "weir_rate_changes_total", "down", "put", "api")
}

// The limiter of calls without a key exists even without such calls, and keeps its initial rate.
func TestWhatNobodyUsesIsNotTheWorst(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	l := perSecond("put", "tenant", 100)
	l.Adaptive = adaptive.Config{On: true, Start: 20}
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{l}}, weir.Options{Clock: c, Events: m.Events()})
	m.Watch(u)
	for range 200 {
		c.now += 50 * time.Millisecond
		p, _ := try(u, weir.Call{Keys: map[string]string{"tenant": "a"}})
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	if got := value(t, reg, "weir_limit_current_rate", "put", "api"); got <= 20 {
		t.Errorf("the rate of the only tenant is %v, want more than it began with", got)
	}
	if got := value(t, reg, "weir_rate_changes_total", "up", "put", "api"); got < 1 {
		t.Errorf("%v changes", got)
	}
}

func TestBreakersAreCountedByState(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	one := newUpstream(t, "one", weir.Policy{}, weir.Options{Clock: c, Events: m.Events()})
	keyed := newUpstream(t, "keyed", weir.Policy{BreakerScope: "shard"}, weir.Options{Clock: c, Events: m.Events()})
	m.Watch(one)
	m.Watch(keyed)
	check(t, reg, 1, "weir_breakers", "closed", "one")
	check(t, reg, 0, "weir_breakers", "open", "one")
	check(t, reg, 0, "weir_breakers", "closed", "keyed")
	check(t, reg, 0, "weir_breaker_transitions_total", "closed", "open", "one") // not absent: otherwise an alert would miss the first one

	one.Breaker("").ForceOpen(c.now, time.Minute)
	for i := range 5 {
		keyed.Breaker(fmt.Sprint(i))
	}
	keyed.Breaker("1").ForceOpen(c.now, time.Second)
	keyed.Breaker("2").ForceOpen(c.now, time.Second)
	c.now += 2 * time.Second
	keyed.Breaker("2").Admit(c.now)
	check(t, reg, 0, "weir_breakers", "closed", "one")
	check(t, reg, 1, "weir_breakers", "open", "one")
	check(t, reg, 3, "weir_breakers", "closed", "keyed")
	check(t, reg, 1, "weir_breakers", "open", "keyed")
	check(t, reg, 1, "weir_breakers", "half-open", "keyed")
	check(t, reg, 1, "weir_breaker_transitions_total", "closed", "open", "one")
	check(t, reg, 2, "weir_breaker_transitions_total", "closed", "open", "keyed")
	check(t, reg, 1, "weir_breaker_transitions_total", "open", "half-open", "keyed")
}

func TestPausesOfOperationsWithoutLimits(t *testing.T) {
	c := &still{now: time.Hour}
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	u := newUpstream(t, "api", weir.Policy{}, weir.Options{Clock: c, Events: m.Events()})
	m.Watch(u)
	p, _ := try(u, weir.Call{})
	p.Report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 4 * time.Second}})
	check(t, reg, 4, "weir_pause_remaining_seconds", "", "default", "api")
	check(t, reg, 1, "weir_pauses_total", "hint", "", "default", "api")
	check(t, reg, 1, "weir_pauses_active", "api")
	check(t, reg, 10, "weir_retry_budget_remaining", "api")
	if _, d := try(u, weir.Call{}); d.Allowed {
		t.Error("a call went through a pause")
	}
	check(t, reg, 1, "weir_decisions_total", "paused", "", "default", "api")
}

func TestForgetDropsEverySeriesOfAnUpstreamAndNoOther(t *testing.T) {
	m, reg := everything(t)
	other := newUpstream(t, "other", weir.Policy{}, weir.Options{Events: m.Events()})
	m.Watch(other)
	p, _ := try(other, weir.Call{})
	p.Report(outcome.Outcome{Class: outcome.OK})
	m.Forget("s3")
	for _, line := range text(t, reg) {
		if strings.Contains(line, `upstream="s3"`) {
			t.Errorf("still there: %s", line)
		}
	}
	check(t, reg, 1, "weir_attempts_total", "ok", "default", "other")
	check(t, reg, 1, "weir_breakers", "closed", "other")
	m.Forget("nobody")

	// Its series begin again, and the series of the other upstream continue.
	again := newUpstream(t, "s3", weir.Policy{Operations: []weir.Operation{{Name: "put"}}}, weir.Options{Events: m.Events()})
	for range 2 {
		p, _ := try(again, weir.Call{Operation: "put"})
		p.Report(outcome.Outcome{})
	}
	p, _ = try(other, weir.Call{})
	p.Report(outcome.Outcome{Class: outcome.OK})
	check(t, reg, 2, "weir_attempts_total", "unknown", "put", "s3")
	check(t, reg, 2, "weir_attempts_total", "ok", "default", "other")
}

func text(t testing.TB, reg prometheus.Gatherer) []string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return strings.Split(w.Body.String(), "\n")
}

func TestWatchReplacesAnUpstreamByTheSameName(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.Watch(newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{perSecond("old", "", 1)}}, weir.Options{}))
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{perSecond("new", "", 2)}}, weir.Options{})
	m.Watch(u)
	check(t, reg, -1, "weir_limit_configured_rate", "old", "api")
	check(t, reg, 2, "weir_limit_configured_rate", "new", "api")

	if err := u.Set(weir.Policy{Limits: []limit.Limit{perSecond("new", "", 5)}}); err != nil {
		t.Fatal(err)
	}
	check(t, reg, 5, "weir_limit_configured_rate", "new", "api")
}

// A name that is not UTF-8 must not fail the scrape.
func TestNamesThatAreNotUTF8AreMadeSo(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	for _, name := range []string{"a\xff", "a\xfe"} {
		u := newUpstream(t, name, weir.Policy{
			Operations: []weir.Operation{{Name: "o\xff"}, {Name: "o\xfe"}},
			Limits:     []limit.Limit{perSecond("l\xff", "", 1), perSecond("l\xfe", "", 1)},
		}, weir.Options{Events: m.Events()})
		m.Watch(u)
		p, _ := try(u, weir.Call{Operation: "o\xff"})
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	check(t, reg, 2, "weir_attempts_total", "ok", "o\uFFFD", "a\uFFFD")
	check(t, reg, 1, "weir_limit_configured_rate", "l\uFFFD", "a\uFFFD")
	m.Forget("a\xff")
	check(t, reg, -1, "weir_attempts_total", "ok", "o\uFFFD", "a\uFFFD")
}

func TestCallersCannotMakeSeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	u := newUpstream(t, "api", weir.Policy{
		Limits:       []limit.Limit{perSecond("tenant", "tenant", 1)},
		BreakerScope: "tenant", MaxWait: -1,
	}, weir.Options{Events: m.Events()})
	m.Watch(u)
	call := func(i int) {
		c := weir.Call{Operation: fmt.Sprint("o", i), Keys: map[string]string{"tenant": fmt.Sprint("t", i)}, ID: fmt.Sprint(i)}
		for range 2 {
			_, _ = weir.Do(t.Context(), u, c, func(context.Context) (int, error) { return 0, nil })
		}
	}
	call(0)
	before := len(text(t, reg))
	for i := range 1000 {
		call(i)
	}
	if after := len(text(t, reg)); after > before {
		t.Errorf("%d lines after 1,000 callers, %d after one", after, before)
	}
}

// Many goroutines, calls that wait and fail, scrapes and reloads at the same time.
func TestNothingIsLostUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := New(reg)
		u := newUpstream(t, "api", weir.Policy{
			Operations: []weir.Operation{{Name: "a"}, {Name: "b"}},
			Limits:     []limit.Limit{perSecond("all", "", 200)},
			// Every call succeeds in the end, after any number of failures, so that the sums are known.
			Breaker: breaker.Config{Off: true},
			Budget:  retry.BudgetConfig{Off: true},
			Retry:   retry.Config{Attempts: 100},
			MaxWait: time.Minute,
		}, weir.Options{Events: m.Events()})
		m.Watch(u)
		var sent, bad [2]atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				for j := range 20 {
					op := (i + j) % 2
					_, _ = weir.Do(t.Context(), u, weir.Call{Operation: "ab"[op : op+1], Safe: true}, func(context.Context) (int, error) {
						if sent[op].Add(1)%5 == 0 {
							bad[op].Add(1)
							return 0, errors.New("bad")
						}
						return 0, nil
					})
				}
			})
		}
		wg.Go(func() {
			for range 50 {
				_, _ = reg.Gather()
				m.Forget("somebody else")
				m.Watch(u)
			}
		})
		wg.Wait()
		for op, name := range []string{"a", "b"} {
			check(t, reg, float64(bad[op].Load()), "weir_attempts_total", "unknown", name, "api")
			check(t, reg, float64(sent[op].Load()-bad[op].Load()), "weir_attempts_total", "ok", name, "api")
			check(t, reg, float64(bad[op].Load()), "weir_retries_total", "unknown", name, "api")
			check(t, reg, float64(sent[op].Load()-bad[op].Load()), "weir_attempt_duration_seconds", "ok", name, "api")
		}
	})
}

func TestEventsAllocateNothing(t *testing.T) {
	e := New(prometheus.NewRegistry()).Events()
	n := testing.AllocsPerRun(100, func() {
		e.Retried(weir.Retried{Subject: subject})
		e.Paused(weir.PauseEvent{Subject: subject})
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
