package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var background = context.Background()

const (
	ms  = time.Millisecond
	sec = time.Second
)

var errLeft = errors.New("the caller left")

// rate is a limit of so many units per period, so many of them at once.
func rate(name string, amount int64, per time.Duration, burst int64) limit.Limit {
	return limit.Limit{Name: name, Rate: bucket.Rate{Amount: amount, Per: per, Burst: burst}}
}

// steady is a policy as it ships, but that retries come after fixed waits: tests tell when.
func steady(limits ...limit.Limit) weir.Policy {
	return weir.Policy{
		Limits: limits,
		Retry:  retry.Config{Jitter: retry.NoJitter, Base: 100 * ms},
	}
}

func open(t testing.TB, p weir.Policy, o weir.Options) *weir.Upstream {
	t.Helper()
	u, err := weir.New("api", p, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// left is how many units the limit has left for the key.
func left(t testing.TB, u *weir.Upstream, name, key string) int64 {
	t.Helper()
	for _, v := range u.Look(1000).Limits {
		if v.Limit.Name == name && v.Key == key {
			return v.Level.Left
		}
	}
	t.Fatalf("no limit %s for key %q", name, key)
	return 0
}

func pass(d time.Duration) { _ = clock.System.Sleep(background, d) }

// since is how long ago the instant was.
func since(at time.Duration) time.Duration { return clock.System.Now() - at }

// refusal is the refusal that err is.
func refusal(t testing.TB, err error) *weir.Refusal {
	t.Helper()
	r, ok := errors.AsType[*weir.Refusal](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

func gaveUp(t testing.TB, err error) *retry.GaveUpError {
	t.Helper()
	g, ok := errors.AsType[*retry.GaveUpError](err)
	if !ok {
		t.Fatalf("got %v, want a GaveUpError", err)
	}
	return g
}

// A leap is a clock for one goroutine: to sleep is to move it.
type leap struct{ now time.Duration }

func (c *leap) Now() time.Duration { return c.now }

func (c *leap) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil && d > 0 {
		return context.Cause(ctx)
	}
	c.now += max(d, 0)
	return nil
}

func (c *leap) Wall(at time.Duration) time.Time { return time.Unix(0, int64(at)) }

func (c *leap) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c *leap) Deadline(context.Context) (time.Duration, bool) { return 0, false }

type countingGate struct{ admitted, reported int }

func (g *countingGate) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	g.admitted++
	return func(outcome.Outcome) { g.reported++ }, nil
}

func with(p weir.Policy, f func(*weir.Policy)) weir.Policy { f(&p); return p }

// bounded is a policy with so many in flight.
func bounded(n int, limits ...limit.Limit) weir.Policy {
	return with(steady(limits...), func(p *weir.Policy) { p.Concurrency.Limit = n })
}

// flights is the only bound there is.
func flights(t testing.TB, u *weir.Upstream) weir.FlightView {
	t.Helper()
	all := u.Look(0).Flights
	if len(all) != 1 {
		t.Fatalf("%d bounds, want one", len(all))
	}
	return all[0]
}

func try(u *weir.Upstream, c weir.Call) (*weir.Permit, weir.Decision) {
	p := new(weir.Permit)
	return p, u.Try(c, p)
}

func scoped(l limit.Limit, scope string) limit.Limit {
	l.Scope = scope
	return l
}

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }

var ok = outcome.Outcome{Class: outcome.OK}

// A ledger is a gate that admits all and checks that every permit is reported
// once.
type ledger struct {
	admitted, reported int
	twice              bool
	last               outcome.Class
}

func (l *ledger) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	l.admitted++
	done := false
	return func(o outcome.Outcome) {
		l.twice = l.twice || done
		done, l.last = true, o.Class
		l.reported++
	}, nil
}

func (l *ledger) check() error {
	if l.twice || l.admitted != l.reported {
		return fmt.Errorf("%d permits, %d reports, some twice: %v", l.admitted, l.reported, l.twice)
	}
	return nil
}

// bad is an error that says how the attempt ended.
type bad struct{ o outcome.Outcome }

func (b *bad) Error() string { return "upstream: " + b.o.Class.String() + " " + b.o.Code }

func (b *bad) Outcome() outcome.Outcome { return b.o }

var errUnsent = &bad{outcome.Outcome{Class: outcome.Failed, Code: "never sent", Undone: true, Unsent: true}}
