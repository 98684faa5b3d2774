package why_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/calls"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var (
	background = context.Background()
	failed     = &calls.Bad{O: outcome.Outcome{Class: outcome.Failed, Code: "broken"}}
	throttled  = &calls.Bad{O: outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown", Undone: true, Hint: outcome.Hint{Said: true, After: 3 * time.Second}}}
	quotaSpent = &calls.Bad{O: outcome.Outcome{Class: outcome.Throttled, Code: "quota", Undone: true, Hint: outcome.Hint{Said: true, After: time.Hour, Quota: true}}}
)

// where returns a position that contains the name of the field.
func where(upstream, field string) string { return "weir.yaml:" + upstream + "." + field }

// call makes a call with an ID whose attempt returns err.
func call(u *weir.Upstream, id string, err error) error {
	_, got := weir.Do(background, u, weir.Call{ID: id, Keys: map[string]string{"tenant": "acme"}}, func(context.Context) (int, error) { return 0, err })
	return got
}

// cases are calls with unwanted results, each with the expected explanation.
var cases = []struct {
	name   string
	policy func(*weir.Policy)
	act    func(t *testing.T, u *weir.Upstream) // ends with a call that has the ID "it"
	kind   why.Kind
	want   []string
	away   []string // expected without the store, unless nil, because that is then the cause
}{
	{"a rate", func(p *weir.Policy) { p.Limits, p.MaxWait = []limit.Limit{calls.Rate("put", 1, 10*time.Second, 1)}, -1 },
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", nil), call(u, "it", nil) },
		why.Refused, []string{"refused by weir: rate_limited", "* limit put", "cost 1, left 0 of 1 requests", "weir.yaml:api.limits.put", "raise the rate", "max_wait (weir.yaml:api.max_wait)"},
		[]string{"refused by weir: rate_limited", "* limit put", "the store does not answer, and this process's part of the limit (100%) does not have enough units yet", "weir status shows the state of the store; store.without"}},
	{"a rate of a key", func(p *weir.Policy) {
		p.Limits, p.MaxWait = []limit.Limit{calls.Scoped(calls.Rate("each", 1, 10*time.Second, 1), "tenant")}, -1
	},
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", nil), call(u, "it", nil) },
		why.Refused, []string{"key: tenant=acme", "limit each of acme", "the rate applies to each key separately"},
		[]string{"key: tenant=acme", "limit each of acme", "does not have enough units yet", "store.without"}},
	{"too dear", func(p *weir.Policy) { p.Limits = []limit.Limit{calls.Rate("put", 1, 10*time.Second, 1)} },
		func(_ *testing.T, u *weir.Upstream) {
			_, _ = u.Acquire(background, weir.Call{ID: "it", Cost: map[string]int64{"requests": 2}})
		},
		why.Refused, []string{"cost 2, left ", "costs more units than the limit can hold (1)"}, nil},
	{"a quota of the calendar", func(p *weir.Policy) {
		p.Limits = []limit.Limit{{Name: "daily", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1}, Every: bucket.Day}}
	},
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", nil), call(u, "it", nil) },
		why.Refused, []string{"quota_exhausted", "the quota is used up until 2000-01-02T00:00:00Z", "weir.yaml:api.limits.daily"},
		[]string{"rate_limited", "this process has used up its part of the quota", "weir.yaml:api.limits.daily", "store.without"}},
	{"an open breaker", func(p *weir.Policy) { p.Breaker = breaker.Config{Failures: 1}; p.Retry.Attempts = 1 },
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", failed), call(u, "it", nil) },
		why.Refused, []string{"circuit_open", "too many calls failed", "breaker (weir.yaml:api.breaker)"}, nil},
	{"a pause by hint", func(p *weir.Policy) {
		p.Limits, p.Retry.Attempts, p.MaxWait = []limit.Limit{calls.Rate("put", 100, time.Second, 100)}, 1, -1
	},
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", throttled), call(u, "it", nil) },
		why.Refused, []string{"paused", "paused for 3s", "weir waits for 15 minutes at most"}, nil},
	{"a pause by an operator", func(p *weir.Policy) { p.MaxWait = -1 },
		func(t *testing.T, u *weir.Upstream) {
			if err := u.Pause(pause.All(), time.Minute, true); err != nil {
				t.Fatal(err)
			}
			_ = call(u, "it", nil)
		},
		why.Refused, []string{"by an operator", "an operator paused these calls"}, nil},
	{"in flight", func(p *weir.Policy) { p.Concurrency, p.MaxWait = calls.Bounded(1).Concurrency, -1 },
		func(t *testing.T, u *weir.Upstream) {
			p, err := u.Acquire(background, weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			_ = call(u, "it", nil)
			p.Report(outcome.Outcome{Class: outcome.OK})
		},
		why.Refused, []string{"concurrency_limited", "at most 1 calls may be in flight", "weir.yaml:api.concurrency"}, nil},
	{"a drain", func(p *weir.Policy) {
		p.Limits = []limit.Limit{calls.Rate("put", 1, 10*time.Second, 1)}
		p.MaxWait = time.Minute
	},
		func(_ *testing.T, u *weir.Upstream) { _ = call(u, "first", nil); u.Drain(); _ = call(u, "it", nil) },
		why.Refused, []string{"shutting_down", "this weir is shutting down"}, nil},
	{"attempts spent", func(p *weir.Policy) { p.Retry.Attempts = 2 },
		func(_ *testing.T, u *weir.Upstream) {
			_, _ = weir.Do(background, u, weir.Call{ID: "it", Safe: true}, func(context.Context) (int, error) { return 0, failed })
		},
		why.Failed, []string{"failed after 2 attempts", "attempt 2  100ms after the previous attempt  failed (broken)", "retry (weir.yaml:api.retry): all attempts were used"}, nil},
	{"unsafe", nil, func(_ *testing.T, u *weir.Upstream) { _ = call(u, "it", failed) },
		why.Failed, []string{"failed after 1 attempt\n", "  no further attempt: ", "send an Idempotency-Key"}, nil},
	{"a hint that is too long", nil,
		func(_ *testing.T, u *weir.Upstream) { _ = call(u, "it", quotaSpent) },
		why.Failed, []string{"throttled (quota), and the upstream asked to wait 1h0m0s"}, nil},
	{"no budget", func(p *weir.Policy) { p.Budget = retry.BudgetConfig{Share: 0.001, Floor: 0.001} },
		func(_ *testing.T, u *weir.Upstream) {
			for _, id := range []string{"a", "b", "c", "it"} {
				_, _ = weir.Do(background, u, weir.Call{ID: id, Safe: true}, func(context.Context) (int, error) { return 0, failed })
			}
		},
		why.Failed, []string{"budget (weir.yaml:api.budget)"}, nil},
	{"a wait", func(p *weir.Policy) {
		p.Limits = []limit.Limit{calls.Rate("put", 1, time.Second, 1)}
		p.MaxWait = time.Minute
	},
		func(_ *testing.T, u *weir.Upstream) { _, _ = call(u, "first", nil), call(u, "it", nil) },
		why.Waited, []string{"api default: ok", "waited 1", "s for its turn in limit put"}, nil},
}

// ways are the ways in which limits are kept.
var ways = []struct {
	name string
	open func(t *testing.T, p weir.Policy, e weir.Events) *weir.Upstream
}{
	{"by a process alone", func(t *testing.T, p weir.Policy, e weir.Events) *weir.Upstream {
		return calls.Open(t, p, weir.Options{Events: e})
	}},
	{"by a fleet", func(t *testing.T, p weir.Policy, e weir.Events) *weir.Upstream {
		return shared(t, p, e, fleet.NewMemory(nil))
	}},
	{"without the store", func(t *testing.T, p weir.Policy, e weir.Events) *weir.Upstream {
		s := &gone{Store: fleet.NewMemory(nil)}
		u := shared(t, p, e, s)
		_ = call(u, "before", nil)
		time.Sleep(20 * time.Second) // the number of processes that share the limits is known
		s.off.Store(true)
		time.Sleep(5 * time.Second)
		return u
	}},
}

// shared returns an upstream whose limits are in a store.
func shared(t *testing.T, p weir.Policy, e weir.Events, s fleet.Store) *weir.Upstream {
	f := fleet.New(s, fleet.Options{})
	f.Start()
	u := calls.Open(t, p, weir.Options{Events: e, Fleet: f})
	t.Cleanup(func() {
		u.Close()
		_ = f.Close(background) // the store may be unavailable
	})
	return u
}

type gone struct {
	fleet.Store
	off atomic.Bool
}

var errGone = errors.New("gone")

func (g *gone) Take(ctx context.Context, a *fleet.Ask) error {
	if g.off.Load() {
		return errGone
	}
	return g.Store.Take(ctx, a)
}

func (g *gone) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if g.off.Load() {
		return fleet.Standing{}, errGone
	}
	return g.Store.Beat(ctx, b)
}

func (g *gone) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if g.off.Load() {
		return nil, time.Time{}, errGone
	}
	return g.Store.Load(ctx, group, names)
}

func (g *gone) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if g.off.Load() {
		return fleet.Record{}, false, errGone
	}
	return g.Store.Swap(ctx, group, r)
}

// The cause of each refusal, failure and wait is explained, wherever the limits are kept.
func TestWhy(t *testing.T) {
	for _, c := range cases {
		for _, way := range ways {
			t.Run(c.name+", limits kept "+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := calls.Steady()
					if c.policy != nil {
						c.policy(&p)
					}
					k := why.New(why.Options{Where: where})
					c.act(t, way.open(t, p, k.Events()))
					found := k.Find("it")
					if len(found) != 1 || found[0].Kind != c.kind {
						t.Fatalf("kept %v, want one %s", found, c.kind)
					}
					text := found[0].Text()
					want := c.want
					if c.away != nil && way.name == "without the store" {
						want = c.away
					}
					for _, want := range want {
						if !strings.Contains(text, want) {
							t.Errorf("%q is missing in:\n%s", want, text)
						}
					}
				})
			})
		}
	}
}

// TestWhatIsKeptIsBounded checks the bounds in total and per second. The oldest calls are dropped and no longer found.
func TestWhatIsKeptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := why.New(why.Options{Most: 20, EachSecond: 7})
		p := calls.Steady()
		p.Breaker, p.Budget = breaker.Config{Off: true}, retry.BudgetConfig{Off: true}
		p.Limits, p.MaxWait = []limit.Limit{calls.Rate("put", 1, time.Hour, 1)}, -1
		u := calls.Open(t, p, weir.Options{Events: k.Events()})
		_ = call(u, "", nil)
		for second := range 10 {
			for i := range 50 {
				_ = call(u, fmt.Sprint(second, ".", i), nil)
			}
			time.Sleep(time.Second)
		}
		kept := 0
		for second := range 10 {
			for i := range 50 {
				n := len(k.Find(fmt.Sprint(second, ".", i)))
				if kept += n; n > 0 && (i >= 7 || second < 7) {
					t.Errorf("call %d of second %d is kept", i, second)
				}
			}
		}
		if kept != 20 {
			t.Errorf("%d are kept, want 20", kept)
		}
	})
}

// TestManyCallsAreKeptAtOnce is for the race detector. Calls of several upstreams have the same ID.
func TestManyCallsAreKeptAtOnce(t *testing.T) {
	k := why.New(why.Options{Most: 8})
	u := calls.Open(t, calls.Steady(), weir.Options{Events: k.Events()})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				_ = call(u, fmt.Sprint(i%5), failed)
				for _, c := range k.Find(fmt.Sprint(i % 3)) {
					_ = c.Text()
				}
			}
		})
	}
	wg.Wait()
	all := 0
	for i := range 5 {
		all += len(k.Find(fmt.Sprint(i)))
	}
	if all > 4*8 {
		t.Errorf("%d are found, of 8 a kind", all)
	}
}

// TestSecretsAreNotKept checks secrets in an upstream's code.
func TestSecretsAreNotKept(t *testing.T) {
	k := why.New(why.Options{})
	u := calls.Open(t, calls.Steady(), weir.Options{Events: k.Events()})
	_ = call(u, "it", &calls.Bad{O: outcome.Outcome{Class: outcome.Failed, Code: "https://u:geheim@host/?token=geheim"}})
	_ = call(u, "it", errors.New("Authorization: Bearer geheimgeheim"))
	for _, c := range k.Find("it") {
		if strings.Contains(c.Text(), "geheim") {
			t.Errorf("kept a secret:\n%s", c.Text())
		}
	}
}
