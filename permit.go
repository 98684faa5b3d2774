package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Permit is the right to make one attempt. It must be reported exactly once,
// whatever becomes of the attempt: one that is dropped keeps what it has been charged, and
// its slot among what is in flight, if that is bounded, until the garbage collector has found
// the permit (for one of Acquire; of Try it does not look for any). It is for one goroutine at a time, and must
// not be copied after its first use.
type Permit struct {
	u     *Upstream // nil once it has been reported
	plan  *plan
	tally *tally        // where it is counted; nil if it is not
	sent  time.Duration // the instant at which it was allowed

	caller   // whose call it is, and what is kept of it
	standing // what it waited for its turn
	ticket   // of the breaker, for the call that this is an attempt of
	account  // with the limits
	berth    // among what is in flight
	hearers  // of the outcome, beside those

	started bool          // the answer has started, and its body is still to come
	start   time.Duration // when it did
}

// A standing is what an attempt waited for its turn, and where: what a refusal says of the line, and
// events of the wait. The zero standing is that of an attempt which has not waited.
type standing struct {
	waited  time.Duration
	maxWait time.Duration // how long the call may still wait; 0 means as long as its policy says
	place   int32         // in line, when it was refused; 0 if it stood in none
	waiting int32         // and how many did
	came    uint64        // in the order in which calls came into lines; 0 if it stood in none
}

// hearers are the gates of the program's own that have let an attempt go on, and who reports to them.
type hearers struct {
	reports []func(outcome.Outcome)
}

// hear tells them how the attempt ended.
func (h *hearers) hear(o outcome.Outcome) {
	for _, report := range h.reports {
		report(o)
	}
}

// A Decision is the answer to whether an attempt may be made now. Most callers want Acquire or Do,
// which wait; a Decision is for those who answer somebody else. The zero Decision is a no.
type Decision struct {
	Allowed    bool
	Reason     Reason        // why not
	RetryAfter time.Duration // how long to wait before asking again; bucket.Never if the cost can never be met
}

// Allowed is the instant, of the upstream's clock, at which the attempt was allowed: the
// limits hold by these instants, however much later the caller goes on.
func (p *Permit) Allowed() time.Duration { return p.sent }

// Levels is what all limits look like that the call is charged to; nil once the attempt has been reported.
func (p *Permit) Levels() []LimitLevel {
	if p.u == nil {
		return nil
	}
	return p.levels(p.u.clock.Now())
}

// subject says whose an event of the attempt is. It is made only where somebody listens.
func (p *Permit) subject(u *Upstream) Subject { return subject(u, p.plan, p.id, p.keys) }

// begin makes p that of an attempt. The ticket of a call goes on to its next attempt.
func (p *Permit) begin(u *Upstream, plan *plan, c *Call, attempt int32) {
	p.u, p.plan, p.by, p.id, p.op, p.keys, p.attempt, p.why, p.waited = u, plan, plan, c.ID, c.Operation, c.Keys, attempt, -1, 0
	if p.flight = plan.flight; c.Part {
		p.flight = nil
	}
	p.tally, p.cell = plan.tally()
	if attempt == 1 {
		p.breaker, p.used, p.counted = nil, false, c.Part
	}
	if p.pool = c.Pool; len(p.pool) > longestKey {
		p.pool = boundedKey(p.pool)
	}
	if p.name, p.credential, p.probing = c.Caller, c.Credential, 0; p.credential != "" {
		p.ofCredential(u)
	}
	p.reports, p.started, p.told, p.heard, p.broken, p.guessed = p.reports[:0], false, false, false, false, c.Estimated
	p.limits.Reset()
	p.maxWait = c.MaxWait
	p.place, p.waiting, p.came, p.slot, p.drop, p.lack, p.paused = 0, 0, 0, 0, nil, limit.LacksNothing, 0
}
