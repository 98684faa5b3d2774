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
	r.now = r.c.clock.Now()
	if r.deadline == never {
		r.given = r.config().Timeout
		return true
	}
	r.given = r.p.share(r.i, r.deadline, r.deadline-r.now)
	return r.given > 0
}

// share is a tier's part of what is left until the deadline: all but what those below
// it are likely to need.
func (p *plan) share(i int, deadline, left time.Duration) time.Duration {
	part := left / time.Duration(p.timed(i, deadline))
	mine := left
	for j := i + 1; j < len(p.tiers); j++ {
		if p.counts(j, deadline) {
			mine -= p.tiers[j].needs(&p.cfg.Tiers[j], part)
		}
	}
	return min(mine, cmp.Or(p.cfg.Tiers[i].Timeout, mine))
}

// timed is how many tiers share the time from the one at i on.
func (p *plan) timed(i int, deadline time.Duration) int {
	n := 1
	for j := i + 1; j < len(p.tiers); j++ {
		if p.counts(j, deadline) {
			n++
		}
	}
	return n
}

// counts reports whether time is to be kept for a tier.
func (p *plan) counts(i int, deadline time.Duration) bool {
	return !p.cfg.Tiers[i].Instant && !p.tiers[i].openBeyond(deadline)
}

// timedOut reports whether an attempt ended because its time was up. What an
// upstream did answer counts as it is, and so does a refusal.
func (r *run) timedOut(err error, o *outcome.Outcome) bool {
	if r.left() || r.in.Err() == nil || refusal(o) {
		return false
	}
	return o.Class == outcome.Canceled || o.Class == outcome.Unknown || errors.Is(err, context.DeadlineExceeded)
}

// late is what a timeout says of the tier: a failure, if it was given its time.
func (r *run) late(hurry bool) outcome.Class {
	if r.given == 0 || r.given >= r.due(hurry) {
		return outcome.Failed
	}
	return outcome.Canceled
}

// due is the time after which a tier that is well would have answered: half of its
// Timeout, or of an equal part of the configured deadline, or four times what it usually
// takes, whichever is the least. What it usually takes says nothing of a caller in a hurry:
// its question may be a long one.
func (r *run) due(hurry bool) time.Duration {
	total, n := r.p.cfg.Deadline, 1
	if total < 0 {
		total = defaultDeadline
	}
	for j := range r.p.tiers {
		if j != r.i && r.p.counts(j, r.deadline) {
			n++
		}
	}
	part := total / time.Duration(n)
	d := min(part, cmp.Or(r.config().Timeout, part)) / 2
	if m := r.p.tiers[r.i].took.Median(); m > 0 && !hurry {
		d = min(d, max(4*m, leastKept))
	}
	return d
}

// later is now+d, or the last instant if there is none so late.
func later(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
