package cascade

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A Turn describes a call at a tier.
type Turn struct {
	Tier       string
	Index      int // of the tier, from 0
	Confidence float64
	Probe      bool          // the call probes whether the tier works again: make one attempt, see weir.Once
	Time       time.Duration // time limit; 0 if only the context limits it
	Above      []Attempt     // attempts at the tiers above; must not be changed
}

// A Result is an answer and its source.
type Result[T any] struct {
	Value      T
	Tier       string
	Index      int // of the tier, from 0
	Confidence float64

	// Degraded reports that a better tier failed, refused the call or was not asked. Tiers that did not apply to the
	// call, or had no answer, do not count.
	Degraded bool

	Above []Attempt // attempts at the tiers above
}

// Run asks one tier after the other until one answers. ask gets the answer of a tier, including its retries, and must
// return soon after its context ends. Most programs switch on Turn.Tier or use Answers.
//
// After a failure, Run asks the next tier immediately. If Options.Classify calls an error rejected, the cascade ends.
// Run then returns this error unchanged, with the value that came with it and the tier in the Result. If the caller's
// context is canceled, Run returns the cause. Otherwise it returns an answer, or a *NoAnswerError if no tier had one. If
// the last tier is instant and never fails, there is always an answer.
//
// A tier gets the remaining time except for the expected needs of the tiers below, and at most its own Timeout. A lower
// tier's need is twice its recent median, or an equal part while that is unknown, but at most its Timeout. Tiers whose
// breaker is open until after the deadline need no time. For instant tiers, a twentieth of the deadline is reserved, at
// most 250 ms. They are also asked when the time is over, even after the deadline of the caller's context.
//
// A timeout counts as a failure of the tier if the tier had enough time: four times its usual time, half of its Timeout,
// or half of an equal part of Config.Deadline. Otherwise the caller's timeout was too short, and the timeout does not
// count.
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

// once asks the current tier. The tier's breaker gets the outcome on every path, also after a panic.
func once[T any](r *run, ask func(context.Context, Turn) (T, error)) (v T, err error) {
	ctx := r.enter()
	defer r.settle()
	v, err = ask(ctx, r.turn())
	err = r.judge(err)
	return v, err
}

// Answers maps names of tiers to functions.
type Answers[T any] map[string]func(context.Context) (T, error)

// Ask implements the function for Run. It returns ErrPass for a tier without a function.
func (a Answers[T]) Ask(ctx context.Context, t Turn) (v T, err error) {
	f := a[t.Tier]
	if f == nil {
		return v, ErrPass
	}
	return f(ctx)
}

const never time.Duration = math.MaxInt64

type run struct {
	c   *Cascade
	p   *plan
	ctx context.Context

	now      time.Duration // start of the current tier's turn
	own      time.Duration // deadline of the caller
	deadline time.Duration // for tiers that are not instant

	above    []Attempt
	degraded bool // a tier above failed or was unavailable
	rejected bool // the request is invalid, so no lower tier is asked

	// State of the current tier.
	i      int
	given  time.Duration // its time limit; 0 if there is none
	permit breaker.Ticket
	in     context.Context // its context
	scope  *scope          // its context, if it ends before the caller's
	cancel context.CancelFunc
	said   verdict
	code   string
}

// begin fixes the plan and the deadline of the run. The deadline is the earlier of the caller's and the cascade's, minus
// the reserve for instant tiers.
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

// left reports whether the caller disconnected. A passed deadline does not count, because the caller may still be
// waiting.
func (r *run) left() bool {
	err := r.ctx.Err()
	return err != nil && !errors.Is(err, context.DeadlineExceeded)
}

// admit reports whether the current tier is asked.
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

// closed returns the attempt for a tier whose breaker refused the call.
func (t *tier) closed(wait time.Duration) Attempt {
	s := t.breaker.State()
	if s.Phase == breaker.HalfOpen {
		return Attempt{Why: IsProbed, Wait: wait}
	}
	return Attempt{Why: IsOpen, Code: s.Why.String(), Wait: wait}
}

// pass records an attempt without an answer.
func (r *run) pass(a Attempt) {
	a.Tier = r.config().Name
	if r.above == nil {
		r.above = make([]Attempt, 0, len(r.p.tiers))
	}
	r.above = append(r.above, a)
	r.degraded = r.degraded || a.unable()
}

func (r *run) turn() Turn {
	t := r.config()
	return Turn{t.Name, r.i, t.Confidence, r.permit.Probe, r.given, r.above}
}

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

// settle reports the result of the turn to the tier.
func (r *run) settle() {
	if r.cancel != nil {
		r.cancel() // also ends contexts from Keep if the tier gave no answer
	}
	if !r.config().Instant {
		now := r.c.clock.Now()
		r.p.tiers[r.i].hear(now, now-r.now, r.permit, r.said, r.code)
	}
}

// judge determines the meaning of an attempt for the call and the tier.
func (r *run) judge(err error) error {
	t := r.p.tiers[r.i]
	if err == nil && r.scope != nil && !r.scope.end(kept) {
		err = ErrTimeout // contexts from Keep have already ended
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

// failed records an attempt that ended with an error: a timeout, a refusal by weir, a rejection of the request, or a
// failure.
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
