package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Gate is whatever else can refuse an attempt, beside the breaker and the
// limits that every upstream has. It is asked after them, in order.
type Gate interface {
	// Admit asks for one attempt, and may wait for it while ctx lasts. It
	// returns what is to hear of the outcome, exactly once (nil if nothing is),
	// or why there is no permit: a *Refusal, as a rule.
	Admit(ctx context.Context, c Call) (report func(outcome.Outcome), err error)
}

// hearers are the gates of the program's own that have let an attempt go on, and who reports to them.
type hearers struct {
	reports  []func(outcome.Outcome)
	metered  bool // they and the limits are left to another permit; see Detach
	detached bool // this is the other
}

// hear tells them how the attempt ended.
func (h *hearers) hear(o outcome.Outcome) {
	for _, report := range h.reports {
		report(o)
	}
}

// askGates asks the gates of the program's own, each of which may wait.
func (p *Permit) askGates(ctx context.Context, now time.Duration, c Call) (d step, err error) {
	admitted := false
	defer func() { // also if a gate panics
		if !admitted {
			p.undo(now)
		}
	}()
	inner, opens, done := p.u.hearing(ctx, p.breaker)
	defer done()
	for _, g := range p.u.options.Gates {
		report, err := g.Admit(inner, c)
		if err != nil && opens.opened.Load() && ctx.Err() == nil {
			if d = p.reconsider(p.u.clock.Now()); d.refused() {
				return d, nil
			}
		}
		if err != nil {
			p.gateRefused(err)
			return d, err
		}
		if report != nil {
			p.reports = append(p.reports, report)
		}
	}
	admitted = true
	if p.sent = p.u.clock.Now(); p.sent == now {
		return goOn, nil
	}
	if d = p.reconsider(p.sent); d.refused() {
		admitted = false
		return d, nil
	}
	if s := p.stoppedBy(p.sent, true); s.wait > 0 { // it began while the gates waited
		return p.askPause(p.sent, s, 0), nil
	}
	return d, nil
}

// gateRefused tells of a refusal by a gate of the program's own.
func (p *Permit) gateRefused(err error) {
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		return
	}
	if l := p.plan.tallies.of(refusal.Limit); l != nil {
		l.waitedFor(p.waited, p.limits.Late())
		l.refuses(refusal.Reason)
	}
	e := &p.u.options.Events
	if e.Decided != nil {
		tell(e.Decided, Decided{Subject: p.subject(p.u, p.plan), Refusal: refusal, Limit: refusal.Limit, Waited: p.waited, Late: p.limits.Late()})
	}
	if e.Refused != nil {
		told := p.refusedFor(p.u.clock.Now(), refusal.Reason)
		told.Limit, told.Key, told.Want, told.RetryAfter, told.ResetAt = refusal.Limit, refusal.Key, refusal.Want, refusal.RetryAfter, refusal.ResetAt()
		tell(e.Refused, told)
	}
}
