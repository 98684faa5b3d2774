package deliverytest

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed1158cd35/weir/delivery"
)

// Operations on one delivery. A sweep is an operation on every delivery.
const (
	accepts  = "accept"
	begins   = "accept and claim"
	claims   = "claim"
	renews   = "renew"
	ends     = "end"
	redrives = "redrive"
	drops    = "drop"
	erases   = "delete"
	looks    = "look"
	sweeps   = "sweep"
)

// A call is one operation by one worker on one delivery, with its result.
type call struct {
	what   string
	key    string // the delivery's idempotency key; empty for a sweep
	worker int

	before, after int64     // positions of the call and its return in the global order of events
	from, until   time.Time // bounds of the queue's time during the call

	ordered bool          // accept: it has an order key
	lease   time.Duration // of its claim or renewal
	claim   int64         // fence of the claim that it renews or ends
	to      delivery.End  // how it ends a claim

	unknown  bool // there was no response: it may take effect at any time after the call, or never
	done     bool // accept: newly stored; renew, end: the claim was not lost; otherwise: the delivery was found
	id       string
	fence    int64
	status   delivery.Status
	attempts int
}

func (c *call) String() string {
	s := fmt.Sprintf("%4d-%-4d worker %d: %s", c.before, c.after, c.worker, c.what)
	switch c.what {
	case renews:
		s += fmt.Sprintf(" fence %d", c.claim)
	case ends:
		s += fmt.Sprintf(" fence %d as %s, due %v, given back %v, again %v", c.claim, c.to.To, c.to.Due.Unix(), c.to.GiveBack, c.to.Again)
	}
	if c.unknown {
		return s + ": no answer"
	}
	return s + fmt.Sprintf(": %v; %s %s, fence %d, %d attempts, at %d", c.done, c.id, c.status, c.fence, c.attempts, c.until.Unix())
}

// erased is the state of a deleted delivery whose key is still known.
const erased delivery.Status = "deleted"

// A stand is a possible state of a delivery. Its zero value is the state before the delivery is accepted.
type stand struct {
	id       string // empty until a response contains it
	status   delivery.Status
	fence    int64 // a lower bound for the fence of the latest claim
	ended    int64 // fence of the latest claim whose end was recorded
	attempts int
	stalls   int
	due      time.Time // it cannot be claimed before
	lease    time.Time // the claim cannot expire before
	left     bool      // no worker got the response to the claim
}

// lifeOfOne is the model of one delivery: created, queued, processing, and completed or failed, or queued again.
var lifeOfOne = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{stand{}} },
	Step: func(was, in, _ any) (is []any) {
		c := in.(*call)
		for _, s := range was.(stand).alone() {
			for _, next := range rules[c.what](s, c) {
				is = append(is, next)
			}
		}
		return is
	},
}).ToModel()

// rules returns the possible states after a call. An empty result means that the response was wrong.
var rules = map[string]func(stand, *call) []stand{
	accepts:  stand.accepted,
	begins:   stand.accepted,
	claims:   stand.claimed,
	renews:   stand.renewed,
	ends:     stand.over,
	redrives: stand.redriven,
	drops:    stand.dropped,
	erases:   stand.deleted,
	looks:    stand.looked,
	sweeps:   stand.swept,
}

// alone returns the state, and the states that may follow without a call: the order key's turn comes, or the queue
// gives back a claim whose response was lost.
func (s stand) alone() []stand {
	all := []stand{s}
	if s.status == delivery.Created {
		s.status = delivery.Queued
		all = append(all, s)
	}
	if s.status == delivery.Processing && s.left {
		s.status, s.left, s.attempts = delivery.Queued, false, s.attempts-1
		all = append(all, s)
		s.stalls = 0
		all = append(all, s)
	}
	return all
}

// is sets the ID to the one in a response. It returns false if they differ.
func (s *stand) is(c *call) bool {
	if s.id == "" {
		s.id = c.id
	}
	return s.id == c.id
}

// maybe returns the possible states after a call without a response: unchanged or next.
func (s stand) maybe(next stand, can bool) []stand {
	if !can {
		return []stand{s}
	}
	return []stand{s, next}
}

func (s stand) when(allowed bool) []stand {
	if !allowed {
		return nil
	}
	return []stand{s}
}

func (s stand) accepted(c *call) []stand {
	born := stand{id: c.id, status: delivery.Queued}
	switch {
	case c.what == begins:
		born.status, born.fence, born.attempts, born.lease, born.left = delivery.Processing, 1, 1, c.from.Add(c.lease), c.unknown
	case c.ordered:
		born.status = delivery.Created
	}
	switch {
	case c.unknown:
		return s.maybe(born, s.status == "")
	case s.status == "":
		return born.when(c.done && (c.what != begins || c.fence == 1))
	}
	same := s.is(c)
	return s.when(same && !c.done)
}

func (s stand) claimed(c *call) []stand {
	can := s.status == delivery.Queued && !c.until.Before(s.due)
	next := s
	next.status, next.fence, next.attempts, next.lease, next.left = delivery.Processing, s.fence+1, s.attempts+1, c.from.Add(c.lease), c.unknown
	if c.unknown {
		return s.maybe(next, can)
	}
	next.fence = c.fence
	same := next.is(c)
	return next.when(can && same && c.fence > s.fence && c.attempts == next.attempts)
}

// holds reports whether the call's claim is the present one.
func (s stand) holds(c *call) bool {
	return s.status == delivery.Processing && !s.left && s.fence == c.claim
}

func (s stand) renewed(c *call) []stand {
	next := s
	next.lease = c.from.Add(c.lease)
	switch {
	case c.unknown:
		return s.maybe(next, s.holds(c))
	case c.done:
		return next.when(s.holds(c))
	}
	return s.when(!s.holds(c))
}

func (s stand) over(c *call) []stand {
	next := s
	next.status, next.ended, next.stalls, next.due, next.lease = c.to.To, c.claim, 0, c.to.Due, time.Time{}
	if c.to.GiveBack {
		next.attempts--
	}
	switch {
	case c.unknown:
		return s.maybe(next, s.holds(c))
	case c.done && s.holds(c):
		return []stand{next}
	case c.done:
		return s.when(c.to.Again && s.ended == c.claim)
	}
	return s.when(!s.holds(c))
}

func (s stand) redriven(c *call) []stand {
	next := s
	next.status, next.fence, next.attempts, next.stalls, next.due = delivery.Queued, s.fence+1, 0, 0, time.Time{}
	if c.ordered {
		next.status = delivery.Created
	}
	return s.byHand(c, next, delivery.Failed)
}

func (s stand) dropped(c *call) []stand {
	next := s
	next.status = delivery.Failed
	return s.byHand(c, next, delivery.Created, delivery.Queued)
}

func (s stand) deleted(c *call) []stand {
	return s.byHand(c, stand{id: s.id, status: erased}, delivery.Failed)
}

// byHand returns the states after an operator's command for deliveries with some statuses. It may skip a delivery that
// another call is changing.
func (s stand) byHand(c *call, next stand, of ...delivery.Status) []stand {
	can := slices.Contains(of, s.status)
	switch {
	case c.unknown:
		return s.maybe(next, can)
	case c.done:
		return next.when(can)
	}
	return []stand{s}
}

func (s stand) looked(c *call) []stand {
	if !c.done {
		return s.when(s.status == "" || s.status == erased)
	}
	same := s.is(c) && s.status == c.status && s.attempts == c.attempts && s.fence <= c.fence
	return s.when(same && (c.status != delivery.Processing || s.left || s.fence == c.fence))
}

// swept returns the states after a sweep, which may end a claim with an expired lease.
func (s stand) swept(c *call) []stand {
	next := s
	next.status, next.left, next.stalls, next.lease = delivery.Queued, false, s.stalls+1, time.Time{}
	if next.stalls >= delivery.MaxStalls {
		next.status = delivery.Failed
	}
	return s.maybe(next, s.status == delivery.Processing && !c.until.Before(s.lease))
}

// lawful reports whether some order of the calls of one delivery and the sweeps explains all responses, with each call
// between its start and its return.
func lawful(all []*call) bool {
	history := make([]porcupine.Operation, 0, len(all))
	for _, c := range all {
		after := c.after
		if c.unknown {
			after = 1 << 62
		}
		history = append(history, porcupine.Operation{ClientId: c.worker, Input: c, Call: c.before, Return: after})
	}
	return porcupine.CheckOperations(lifeOfOne, history)
}
