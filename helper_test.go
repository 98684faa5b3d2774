package weir_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/calls"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var background = context.Background()

const (
	ms  = time.Millisecond
	sec = time.Second
)

// Helpers shared with the tests of httpx.
type (
	leap   = calls.Leap
	ledger = calls.Ledger
	bad    = calls.Bad
)

var (
	rate, scoped, steady, bounded, with = calls.Rate, calls.Scoped, calls.Steady, calls.Bounded, calls.With
	open, try, left, flights            = calls.Open, calls.Try, calls.Left, calls.Flights
	refusal, gaveUp                     = calls.Refusal, calls.GaveUp
	pass, since, chance                 = calls.Pass, calls.Since, calls.Chance
	errUnsent, errLeft                  = calls.ErrUnsent, calls.ErrLeft
)

var (
	errFailed    = &bad{O: outcome.Outcome{Class: outcome.Failed, Code: "broken"}}
	errRejected  = &bad{O: outcome.Outcome{Class: outcome.Rejected, Code: "bad request"}}
	errThrottled = &bad{O: outcome.Outcome{Class: outcome.Throttled, Code: "slow down", Undone: true}}
	errPlain     = errors.New("something")
)

func hinted(after time.Duration) *bad {
	return &bad{O: outcome.Outcome{
		Class: outcome.Throttled, Code: "slow down", Undone: true, Hint: outcome.Hint{Said: true, After: after},
	}}
}

func tokens(amount int64, per time.Duration, burst int64) limit.Limit {
	l := rate("tokens", amount, per, burst)
	l.Unit = "tokens"
	return l
}

// unbounded returns steady without breaker and budget, which would end repeated failures of an upstream.
func unbounded(limits ...limit.Limit) weir.Policy {
	p := steady(limits...)
	p.Breaker, p.Budget = breaker.Config{Off: true}, retry.BudgetConfig{Off: true}
	return p
}

// replies is an upstream that returns the errors in turn, and then repeats the last one.
type replies struct {
	errs []error
	n    int
	at   []time.Duration // when it was called
}

func (r *replies) call(context.Context) (int, error) {
	r.at = append(r.at, clock.System.Now())
	err := r.errs[min(r.n, len(r.errs)-1)]
	r.n++
	return r.n, err
}

func answers(errs ...error) *replies { return &replies{errs: errs} }

// do makes a safe call.
func do(ctx context.Context, u *weir.Upstream, r *replies) (int, error) {
	return weir.Do(ctx, u, weir.Call{Safe: true}, r.call)
}

// seeds returns consecutive seeds, different in each run.
func seeds(n uint64) iter.Seq[uint64] {
	n = uint64(raced.Of(int(n), int(max(1, n/5))))
	first := rand.Uint64() >> 1
	return func(yield func(uint64) bool) {
		for seed := first; seed < first+n && yield(seed); seed++ {
		}
	}
}
