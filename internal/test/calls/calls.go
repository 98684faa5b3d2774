// Package calls has helpers for tests of calls under a policy: policies with predictable waits, a clock without goroutines, and
// a gate that counts.
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

// Rate returns a limit of amount units per period with a burst.
func Rate(name string, amount int64, per time.Duration, burst int64) limit.Limit {
	return limit.Limit{Name: name, Rate: bucket.Rate{Amount: amount, Per: per, Burst: burst}}
}

// Scoped returns the limit for each value of a scope.
func Scoped(l limit.Limit, scope string) limit.Limit {
	l.Scope = scope
	return l
}

// Steady returns a default policy, except that retries wait for a fixed time, which tests can predict.
func Steady(limits ...limit.Limit) weir.Policy {
	return weir.Policy{
		Limits: limits,
		Retry:  retry.Config{Jitter: retry.NoJitter, Base: 100 * time.Millisecond},
	}
}

// With returns the policy with a change.
func With(p weir.Policy, f func(*weir.Policy)) weir.Policy { f(&p); return p }

// Bounded returns Steady with at most n calls in flight.
func Bounded(n int, limits ...limit.Limit) weir.Policy {
	return With(Steady(limits...), func(p *weir.Policy) { p.Concurrency.Limit = n })
}

// Open creates an upstream named "api".
func Open(t testing.TB, p weir.Policy, o weir.Options) *weir.Upstream {
	t.Helper()
	u, err := weir.New("api", p, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Try requests a permit without waiting.
func Try(u *weir.Upstream, c weir.Call) (*weir.Permit, weir.Decision) {
	p := new(weir.Permit)
	return p, u.Try(c, p)
}

// Left returns the remaining units of the limit for a key.
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

// Flights returns the only bound of calls in flight.
func Flights(t testing.TB, u *weir.Upstream) weir.FlightView {
	t.Helper()
	all := u.Look(0).Flights
	if len(all) != 1 {
		t.Fatalf("%d bounds, want one", len(all))
	}
	return all[0]
}

// Refusal returns err as a refusal.
func Refusal(t testing.TB, err error) *weir.Refusal { return as[*weir.Refusal](t, err) }

// GaveUp returns err as the end of retries.
func GaveUp(t testing.TB, err error) *retry.GaveUpError { return as[*retry.GaveUpError](t, err) }

func as[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("got %v, want a %T", err, e)
	}
	return e
}

// Bad is an error with the outcome of an attempt.
type Bad struct{ O outcome.Outcome }

func (b *Bad) Error() string            { return "upstream: " + b.O.Class.String() + " " + b.O.Code }
func (b *Bad) Outcome() outcome.Outcome { return b.O }

var (
	// ErrUnsent is the error of an attempt that sent nothing.
	ErrUnsent = &Bad{O: outcome.Outcome{Class: outcome.Failed, Code: "never sent", Undone: true, Unsent: true}}
	// ErrLeft is the cause with which a caller's context ends when it disconnects.
	ErrLeft = errors.New("the caller left")
)

// Pass sleeps for d.
func Pass(d time.Duration) { _ = clock.System.Sleep(context.Background(), d) }

// Since returns the time since a moment.
func Since(at time.Duration) time.Duration { return clock.System.Now() - at }

// Chance returns a random source with a seed.
func Chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }

// A Leap is a clock for one goroutine. Sleeping advances it.
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

// A Ledger is a gate that admits all calls and checks that every permit is reported once.
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

// Check returns an error if a permit was not reported, or reported twice.
func (l *Ledger) Check() error {
	if l.twice || l.Admitted != l.Reported {
		return fmt.Errorf("%d permits, %d reports, some twice: %v", l.Admitted, l.Reported, l.twice)
	}
	return nil
}
