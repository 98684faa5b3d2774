package cascade

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A Turn is a tier's turn to answer a call.
type Turn struct {
	Tier       string
	Index      int // of the tier, from 0
	Confidence float64
	Probe      bool          // the call finds out whether the tier is up again: it should be tried once, see weir.Once
	Time       time.Duration // that it is given; 0 if as long as the context lasts
	Above      []Attempt     // what became of the call at the tiers above; not to be changed
}

// A Result is an answer, and where it comes from.
type Result[T any] struct {
	Value      T
	Tier       string
	Index      int // of the tier, from 0
	Confidence float64

	// Degraded means that a better tier would have answered on a better day: it
	// failed, was held back or was not asked. Tiers that the call was not meant
	// for, or that had nothing, do not count.
	Degraded bool

	Above []Attempt // what became of the call at the tiers above
}

// Run asks one tier after the other until one answers. ask answers for a tier; it
// does all that this tier does for a call, retries included, and returns soon
// after its context has ended. Most programs have it switch on Turn.Tier, or use
// Answers.
//
// After a failure the next tier is asked at once. An error that Options.Classify
// calls rejected ends the cascade, and Run returns it as it is, in a Result that
// says which tier it came from, with the value that came with it. A
// caller who leaves (a context that is canceled) ends it too; the error is the
// cause. Otherwise there is an answer, or a *NoAnswerError if no tier had one.
// With a last tier that is instant and never fails there is always one.
//
// A tier is given all the time that is left but what the tiers below it are likely to
// need: twice the median of what they took lately, an equal part while nothing is
// known of them, or their Timeout if that is less. It has no more than its own
// Timeout. Tiers whose breaker is open until after the deadline need none. Where
// there are instant tiers a twentieth of the deadline, 250 ms at
// most, is kept for them; they are asked when all time is up, too, even if the
// caller's context has passed its own deadline. A tier whose time is up has failed
// if it was given four times what it usually takes, or half of its Timeout, or of an
// equal part of Config.Deadline; otherwise the caller's timeout was too short, which says
// nothing of it.
func Run[T any](ctx context.Context, c *Cascade, ask func(context.Context, Turn) (T, error)) (Result[T], error) {
	var r run
	r.begin(ctx, c)
	for r.i = range r.p.tiers {
		if r.left() {
			return Result[T]{Above: r.above}, context.Cause(ctx)
		}
		if !r.admit() {
			continue
		}
		v, err := once(&r, ask)
		switch {
		case err == nil || r.rejected:
			t := r.config()
			return Result[T]{v, t.Name, r.i, t.Confidence, r.degraded, r.above}, err
		case r.left():
			return Result[T]{Above: r.above}, context.Cause(ctx)
		}
	}
	return Result[T]{Degraded: r.degraded, Above: r.above}, noAnswer(r.above)
}

// once asks the present tier. The tier observes the outcome on every path: one that
// panics gives its place back.
func once[T any](r *run, ask func(context.Context, Turn) (T, error)) (v T, err error) {
	ctx := r.enter()
	defer r.settle()
	v, err = ask(ctx, r.turn())
	err = r.judge(err)
	return v, err
}

// Answers are functions by the names of their tiers.
type Answers[T any] map[string]func(context.Context) (T, error)

// Ask is what Run wants. A tier without a function is passed.
func (a Answers[T]) Ask(ctx context.Context, t Turn) (v T, err error) {
	f := a[t.Tier]
	if f == nil {
		return v, ErrPass
	}
	return f(ctx)
}

const never time.Duration = math.MaxInt64

// A run is a call on its way down.
type run struct {
	c   *Cascade
	p   *plan
	ctx context.Context

	now      time.Duration // when the present tier's turn began
	own      time.Duration // the caller's deadline
	deadline time.Duration // for tiers that take time

	above    []Attempt
	degraded bool // one of them would have answered on a better day
	rejected bool // what the caller asked for is wrong: no tier below is asked

	// The present tier.
	i      int
	given  time.Duration // its time; 0 if there is no end to it
	permit breaker.Ticket
	in     context.Context // its context
	scope  *scope          // that context, if it ends before the caller's
	cancel context.CancelFunc
	said   verdict
	code   string
}

// begin has the run go by the plan in force now, to its end, and by the nearer of two deadlines: the
// caller's and the cascade's, less what the last tiers need.
func (r *run) begin(ctx context.Context, c *Cascade) {
	r.c, r.p, r.ctx = c, c.plan.Load(), ctx
	r.own, r.deadline = never, never
	if at, ok := c.clock.Deadline(ctx); ok {
		r.own = at
	}
	if total := r.p.cfg.Deadline; total > 0 || r.own != never {
		now := c.clock.Now()
		r.deadline = r.own
		if total > 0 {
			r.deadline = min(r.own, later(now, total))
		}
		r.deadline -= r.p.spare(r.deadline - now)
	}
}

func (r *run) config() *TierConfig { return &r.p.cfg.Tiers[r.i] }

// left reports whether the caller disconnected. One whose deadline has passed may
// still be there.
func (r *run) left() bool {
	err := r.ctx.Err()
	return err != nil && !errors.Is(err, context.DeadlineExceeded)
}

// admit decides whether the present tier is asked.
func (r *run) admit() bool {
	t, cfg := r.p.tiers[r.i], r.config()
	r.permit, r.given = breaker.Ticket{}, 0
	if cfg.When != nil && !cfg.When(r.above) {
		t.empty.Add(1)
		r.pass(Attempt{Why: Passed})
		return false
	}
	if cfg.Instant {
		return true
	}
	if !r.allot() {
		t.skipped.Add(1)
		r.pass(Attempt{Why: NoTime})
		return false
	}
	wait, ok := time.Duration(0), false
	if r.permit, wait, ok = t.breaker.Admit(r.now); ok {
		return true
	}
	t.skipped.Add(1)
	r.pass(t.closed(wait))
	return false
}

// closed is what a call knows of a tier that does not want to be asked.
func (t *tier) closed(wait time.Duration) Attempt {
	s := t.breaker.State()
	if s.Phase == breaker.HalfOpen {
		return Attempt{Why: IsProbed, Wait: wait}
	}
	return Attempt{Why: IsOpen, Code: s.Why.String(), Wait: wait}
}

// pass goes on to the next tier.
func (r *run) pass(a Attempt) {
	a.Tier = r.config().Name
	if r.above == nil {
		r.above = make([]Attempt, 0, len(r.p.tiers))
	}
	r.above = append(r.above, a)
	r.degraded = r.degraded || a.unable()
}

// turn is what a tier is told of the call: its name, how long it has, and what became of the call above.
func (r *run) turn() Turn {
	t := r.config()
	return Turn{t.Name, r.i, t.Confidence, r.permit.Probe, r.given, r.above}
}

// enter makes the present tier's context.
func (r *run) enter() context.Context {
	r.said, r.code, r.scope, r.cancel, r.in = nothing, "", nil, nil, r.ctx
	switch {
	case r.config().Instant && r.ctx.Err() != nil:
		r.in, r.cancel = r.c.clock.WithTimeout(context.WithoutCancel(r.ctx), grace, ErrTimeout)
	case r.given > 0 && (r.own == never || later(r.now, r.given) < r.own):
		ctx, cancel := r.c.clock.WithTimeout(r.ctx, r.given, ErrTimeout)
		r.scope, r.cancel = &scope{Context: ctx, caller: r.ctx}, cancel
		r.in = r.scope
	}
	return r.in
}

// settle tells the tier what became of its turn.
func (r *run) settle() {
	if r.cancel != nil {
		r.cancel() // and with it what a tier has kept that did not answer
	}
	if !r.config().Instant {
		now := r.c.clock.Now()
		r.p.tiers[r.i].hear(now, now-r.now, r.permit, r.said, r.code)
	}
}

// judge says what an attempt means, to the call and to the tier.
func (r *run) judge(err error) error {
	t := r.p.tiers[r.i]
	if err == nil && r.scope != nil && !r.scope.end(kept) {
		err = ErrTimeout // what it kept has ended already
	}
	switch {
	case err == nil:
		r.said = works
		t.answered.Add(1)
		return nil
	case errors.Is(err, ErrPass):
		t.empty.Add(1)
		r.pass(Attempt{Why: Passed})
	case errors.Is(err, ErrNothing):
		r.said = lives
		t.empty.Add(1)
		r.pass(Attempt{Why: Nothing})
	case errors.Is(err, ErrElsewhere):
		r.said = lives
		t.empty.Add(1)
		r.pass(Attempt{Why: Failed, Code: r.c.options.Classify(r.ctx, err).Code, Err: err})
	default:
		r.failed(t, err)
	}
	return err
}

// failed notes that a tier gave no answer, and why: out of time, held back by a gate of weir, refused
// for what the caller sent, or in vain.
func (r *run) failed(t *tier, err error) {
	o := r.c.options.Classify(r.ctx, err)
	a := Attempt{Why: Failed, Code: o.Code, Wait: max(0, o.Hint.After), Err: err}
	switch {
	case r.timedOut(err, &o):
		a.Why, a.Code = TimedOut, "timeout"
		o.Class = r.late(errors.Is(err, ErrHurry))
	case refusal(&o):
		a.Why = Refused
	}
	r.said, r.code = verdict{o}, a.Code
	if r.rejected = o.Class == outcome.Rejected; r.rejected {
		t.answered.Add(1)
		return
	}
	if a.Why == Refused {
		t.empty.Add(1)
	} else {
		t.failures.Add(1)
	}
	r.pass(a)
}
