// Package calls is what the tests of calls under a policy share: policies whose waits can be told
// beforehand, a clock without goroutines, and a gate that counts.
package calls

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

// Rate is a limit of so many units per period, so many of them at once.
func Rate(name string, amount int64, per time.Duration, burst int64) limit.Limit {
	return limit.Limit{Name: name, Rate: bucket.Rate{Amount: amount, Per: per, Burst: burst}}
}

// Scoped is the limit for each value of the scope.
func Scoped(l limit.Limit, scope string) limit.Limit {
	l.Scope = scope
	return l
}

// Steady is a policy as it ships, but that retries come after fixed waits: tests tell when.
func Steady(limits ...limit.Limit) weir.Policy {
	return weir.Policy{
		Limits: limits,
		Retry:  retry.Config{Jitter: retry.NoJitter, Base: 100 * time.Millisecond},
	}
}

// With is the policy with a change.
func With(p weir.Policy, f func(*weir.Policy)) weir.Policy { f(&p); return p }

// Bounded is Steady with at most n in flight.
func Bounded(n int, limits ...limit.Limit) weir.Policy {
	return With(Steady(limits...), func(p *weir.Policy) { p.Concurrency.Limit = n })
}

// Open makes an upstream, "api".
func Open(t testing.TB, p weir.Policy, o weir.Options) *weir.Upstream {
	t.Helper()
	u, err := weir.New("api", p, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Try asks for a permit without waiting.
func Try(u *weir.Upstream, c weir.Call) (*weir.Permit, weir.Decision) {
	p := new(weir.Permit)
	return p, u.Try(c, p)
}

// Left is how many units the limit has left for the key.
func Left(t testing.TB, u *weir.Upstream, name, key string) int64 {
	t.Helper()
	for _, v := range u.Look(1000).Limits {
		if v.Limit.Name == name && v.Key == key {
			return v.Level.Left
		}
	}
	t.Fatalf("no limit %s for key %q", name, key)
	return 0
}

// Flights is the only bound of what is in flight that there is.
func Flights(t testing.TB, u *weir.Upstream) weir.FlightView {
	t.Helper()
	all := u.Look(0).Flights
	if len(all) != 1 {
		t.Fatalf("%d bounds, want one", len(all))
	}
	return all[0]
}

// Refusal is the refusal that err is.
func Refusal(t testing.TB, err error) *weir.Refusal { return as[*weir.Refusal](t, err) }

// GaveUp is the end of tries that err is.
func GaveUp(t testing.TB, err error) *retry.GaveUpError { return as[*retry.GaveUpError](t, err) }

func as[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("got %v, want a %T", err, e)
	}
	return e
}

// Bad is an error that says how the attempt ended.
type Bad struct{ O outcome.Outcome }

func (b *Bad) Error() string            { return "upstream: " + b.O.Class.String() + " " + b.O.Code }
func (b *Bad) Outcome() outcome.Outcome { return b.O }

var (
	// ErrUnsent is that of an attempt of which nothing was sent.
	ErrUnsent = &Bad{O: outcome.Outcome{Class: outcome.Failed, Code: "never sent", Undone: true, Unsent: true}}
	// ErrLeft is why the context of a caller ends that leaves.
	ErrLeft = errors.New("the caller left")
)

// Pass lets d go by.
func Pass(d time.Duration) { _ = clock.System.Sleep(context.Background(), d) }

// Since is how long ago the instant was.
func Since(at time.Duration) time.Duration { return clock.System.Now() - at }

// Chance is a source of numbers that the seed decides.
func Chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }

// A Leap is a clock for one goroutine: to sleep is to move it.
type Leap struct{ At time.Duration }

func (c *Leap) Now() time.Duration { return c.At }

func (c *Leap) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil && d > 0 {
		return context.Cause(ctx)
	}
	c.At += max(d, 0)
	return nil
}

func (c *Leap) Wall(at time.Duration) time.Time { return time.Unix(0, int64(at)) }

func (c *Leap) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c *Leap) Deadline(context.Context) (time.Duration, bool) { return 0, false }

// A Ledger is a gate that admits all and checks that every permit is reported once.
type Ledger struct {
	Admitted, Reported int
	Last               outcome.Class
	twice              bool
}

func (l *Ledger) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	l.Admitted++
	done := false
	return func(o outcome.Outcome) {
		l.twice = l.twice || done
		done, l.Last = true, o.Class
		l.Reported++
	}, nil
}

// Check says whether a permit was not reported, or twice.
func (l *Ledger) Check() error {
	if l.twice || l.Admitted != l.Reported {
		return fmt.Errorf("%d permits, %d reports, some twice: %v", l.Admitted, l.Reported, l.twice)
	}
	return nil
}
