package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Permit is the right to make one attempt. Report it exactly once, whatever happens to the attempt. A dropped
// permit keeps its units, and keeps its slot until the garbage collector finds the permit. That works for permits of
// Acquire, not of Try. A Permit is not safe for concurrent use and must not be copied after first use.
type Permit struct {
	u     *Upstream // nil once it has been reported
	plan  *plan
	tally *tally        // its counters; nil if calls are not counted
	sent  time.Duration // when it was allowed

	caller   // fields of its Call
	standing // its wait
	ticket   // of the breaker, shared by all attempts of the call
	account  // its charges
	berth    // its slot among the attempts in flight
	hearers  // custom gates that receive the outcome

	understudy *understudy // its attempt in the policy's shadow; nil if there is none

	started bool          // the response has started, and its body has not ended
	start   time.Duration // when it started
}

// A standing describes an attempt's wait for its turn, for refusals and events. The zero standing has not waited.
type standing struct {
	waited  time.Duration
	maxWait time.Duration // how long the call may still wait; 0 means the policy's wait
	place   int32         // position in the queue when refused; 0 if in none
	waiting int32         // length of that queue
	came    uint64        // rank in the order of arrival in queues; 0 if in none
}

// hearers holds the report functions of the custom gates that have admitted an attempt.
type hearers struct {
	reports []func(outcome.Outcome)
}

// hear reports how the attempt ended.
func (h *hearers) hear(o outcome.Outcome) {
	for _, report := range h.reports {
		report(o)
	}
}

// A Decision states whether an attempt may be made now. Most callers want Acquire or Do, which wait. A Decision is
// for programs that decide on behalf of others. The zero Decision does not allow the attempt.
type Decision struct {
	Allowed    bool
	Reason     Reason        // why it is not allowed
	RetryAfter time.Duration // how long to wait before asking again; bucket.Never if the cost can never be met
}

// Allowed returns the instant, of the upstream's clock, at which the attempt was allowed. The limits hold for these
// instants, even if the caller proceeds later.
func (p *Permit) Allowed() time.Duration { return p.sent }

// Levels returns the state of all limits that the attempt is charged to; nil once it has been reported.
func (p *Permit) Levels() []LimitLevel {
	if p.u == nil {
		return nil
	}
	return p.levels(p.u.clock.Now())
}

// subject returns the subject of an event of the attempt. It allocates, so it is called only if there is a listener.
func (p *Permit) subject(u *Upstream) Subject { return subject(u, p.plan, p.id, p.keys) }

// begin initializes p for an attempt. All attempts of a call keep the same ticket.
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
	p.understudy = nil
	p.maxWait = c.MaxWait
	p.place, p.waiting, p.came, p.slot, p.drop, p.lack, p.paused = 0, 0, 0, 0, nil, limit.LacksNothing, 0
}
