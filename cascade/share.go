package cascade

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// grace is the time of an instant tier after the deadline. It usually needs microseconds.
const grace = time.Second

// spare returns the part of a call's time that is reserved for instant tiers.
func (p *plan) spare(total time.Duration) time.Duration {
	for i := range p.cfg.Tiers {
		if p.cfg.Tiers[i].Instant {
			return max(0, min(total/20, 250*time.Millisecond))
		}
	}
	return 0
}

func (r *run) allot() bool {
	r.now = r.c.clock.Now()
	if r.deadline == never {
		r.given = r.config().Timeout
		return true
	}
	r.given = r.p.share(r.i, r.deadline, r.deadline-r.now)
	return r.given > 0
}

// share returns a tier's part of the remaining time: everything that the lower tiers are not expected to need.
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

// timed returns the number of tiers from i on that share the time.
func (p *plan) timed(i int, deadline time.Duration) int {
	n := 1
	for j := i + 1; j < len(p.tiers); j++ {
		if p.counts(j, deadline) {
			n++
		}
	}
	return n
}

// counts reports whether time is reserved for a tier.
func (p *plan) counts(i int, deadline time.Duration) bool {
	return !p.cfg.Tiers[i].Instant && !p.tiers[i].openBeyond(deadline)
}

// timedOut reports whether an attempt ended because of its time limit. An upstream's response and a refusal count as
// they are.
func (r *run) timedOut(err error, o *outcome.Outcome) bool {
	if r.left() || r.in.Err() == nil || refusal(o) {
		return false
	}
	return o.Class == outcome.Canceled || o.Class == outcome.Unknown || errors.Is(err, context.DeadlineExceeded)
}

// late returns the class of a timeout: a failure if the tier had enough time.
func (r *run) late(hurry bool) outcome.Class {
	if r.given == 0 || r.given >= r.due(hurry) {
		return outcome.Failed
	}
	return outcome.Canceled
}

// due returns the time after which a healthy tier would have answered. It is the minimum of half of its Timeout, half of
// an equal part of the configured deadline, and four times its usual time. The usual time is ignored for a caller with a
// short timeout, because its question may take longer.
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

// later returns now+d, or never on overflow.
func later(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
