package cascade

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// grace is the time of an instant tier when none is left. It takes microseconds.
const grace = time.Second

// spare is what is kept of a call's time for instant tiers.
func (p *plan) spare(total time.Duration) time.Duration {
	for i := range p.cfg.Tiers {
		if p.cfg.Tiers[i].Instant {
			return max(0, min(total/20, 250*time.Millisecond))
		}
	}
	return 0
}

// allot finds the present tier's time, and reports whether there is any.
func (r *run) allot() bool {
	if r.deadline == never {
		r.given = r.config().Timeout
		return true
	}
	if r.i > 0 {
		r.now = r.c.clock.Now()
	}
	r.given = r.p.fair(r.i, r.deadline, r.deadline-r.now)
	return r.given > 0
}

// fair is a tier's part of what is left until the deadline.
func (p *plan) fair(i int, deadline, left time.Duration) time.Duration {
	n := 1
	for j := i + 1; j < len(p.tiers); j++ {
		if p.needs(j, deadline) {
			n++
		}
	}
	part := left / time.Duration(n)
	for j := i + 1; j < len(p.tiers); j++ {
		if p.needs(j, deadline) {
			left -= min(part, cmp.Or(p.cfg.Tiers[j].Timeout, part))
		}
	}
	return min(left, cmp.Or(p.cfg.Tiers[i].Timeout, left))
}

// needs reports whether time is to be kept for a tier.
func (p *plan) needs(i int, deadline time.Duration) bool {
	return !p.cfg.Tiers[i].Instant && !p.tiers[i].coolsBeyond(deadline)
}

// patience is how long a probe's place is kept for it: longer than its time.
func (r *run) patience() time.Duration {
	return max(r.p.cfg.Probe, later(r.given, time.Second))
}

// timedOut reports whether an attempt ended because its time was up. What an
// upstream did answer counts as it is, and so does a refusal.
func (r *run) timedOut(err error, o *outcome.Outcome) bool {
	if r.left() || r.in.Err() == nil || refusal(o) {
		return false
	}
	return o.Class == outcome.Canceled || o.Class == outcome.Unknown || errors.Is(err, context.DeadlineExceeded)
}

// late is what a timeout says of the tier: a failure, if it was given at least half
// of an equal part of the configured deadline.
func (r *run) late() outcome.Class {
	total, n := r.p.cfg.Deadline, 1
	if total < 0 {
		total = defaultDeadline
	}
	for j := range r.p.tiers {
		if j != r.i && r.p.needs(j, r.deadline) {
			n++
		}
	}
	part := total / time.Duration(n)
	if r.given == 0 || r.given >= min(part, cmp.Or(r.config().Timeout, part))/2 {
		return outcome.Failed
	}
	return outcome.Canceled
}
