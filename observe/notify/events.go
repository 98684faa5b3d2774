package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Events is what to give to an upstream, so that people are told of it.
func (n *Notifier) Events() weir.Events {
	return weir.Events{Refused: n.refused, Rejected: n.rejected, Retried: n.retried, GaveUp: n.gaveUp, Violated: n.violated, Breaker: n.breaker}
}

// Fleet is what to give to fleet.New, so that people are told when its store is away.
func (n *Notifier) Fleet() fleet.Events { return fleet.Events{Fallback: n.fallback} }

// Died is to be called when deliveries to an upstream have become dead letters, for one of the reasons of
// package delivery.
func (n *Notifier) Died(upstream, reason string, number int) {
	n.happened(subject{kind: DeadLetter, upstream: upstream}, func() string { return fmt.Sprintf("%d, reason %s", number, reason) })
}

// Failed is to be called when weir itself could not do what a call needs, for a reason that is one of a fixed few. id is
// the call's correlation id, under which the log has it.
func (n *Notifier) Failed(upstream, reason, id string) {
	n.happened(subject{kind: System, upstream: upstream}, func() string { return reason + called(id) })
}

// called is the id of a call, which its caller may have chosen.
func called(id string) string {
	if id = observe.Redact(id, 64); id == "" {
		return ""
	}
	return ", correlation id " + id
}

func (n *Notifier) rejected(e weir.Ended) {
	if e.Outcome.Fault() == outcome.System {
		n.happened(subject{kind: System, upstream: e.Upstream, operation: e.Operation}, func() string { return ending(&e.Outcome) + called(e.ID) })
	}
}

func (n *Notifier) refused(e weir.Refused) (quiet time.Duration) {
	if e.Reason != weir.QuotaExhausted {
		return weir.Never
	}
	n.happened(subject{Quota, e.Upstream, e.Operation, e.Limit}, func() string {
		if e.ResetAt.IsZero() {
			return ""
		}
		return "it resets at " + e.ResetAt.Format(time.RFC3339)
	})
	return 0
}

func (n *Notifier) gaveUp(e weir.GaveUp) {
	s := subject{kind: Exhausted, upstream: e.Upstream, operation: e.Operation}
	why := observe.Why(e.Why)
	switch why {
	case "canceled", "not_retryable", string(weir.QuotaExhausted): // the caller left; nothing is exhausted; Refused has told
		return
	case "quota":
		s.kind = Quota // the upstream's own
	}
	n.happenedTo(e.Key, e.Err, s, func() string {
		return fmt.Sprintf("reason %s after %d attempts; last attempt: %s", why, e.Attempts, ending(&e.Outcome))
	})
}

func (n *Notifier) retried(e weir.Retried) {
	n.happenedTo(e.Key, e.Err, subject{kind: Retry, upstream: e.Upstream, operation: e.Operation}, func() string {
		return fmt.Sprintf("attempt %d was %s", e.Attempt, ending(&e.Outcome))
	})
}

func (n *Notifier) violated(e weir.Violation) {
	var limits []string
	for i := range e.Levels {
		limits = append(limits, e.Levels[i].Rule.Name)
	}
	s := subject{Violation, e.Upstream, e.Operation, strings.Join(slices.Compact(limits), "+")}
	n.happenedTo(e.Key, nil, s, func() string { return standing(&e) })
}

// standing is what there was to see when the upstream throttled: the limits, what was under way, and what had gone just before.
func standing(e *weir.Violation) string {
	var b strings.Builder
	for _, v := range e.Levels {
		fmt.Fprintf(&b, "limit %s (%v) had %d of %d left; ", v.Rule.Name, v.Rule, v.Level.Left, v.Level.Full)
	}
	fmt.Fprintf(&b, "%d attempts were in flight", e.InFlight)
	for i, ago := range e.Last[:min(len(e.Last), mostAgo)] {
		b.WriteString([]string{", the last attempts began ", ", "}[min(i, 1)] + ago.Round(time.Millisecond).String())
		if i < len(e.Amounts) {
			fmt.Fprintf(&b, " (%d units)", e.Amounts[i])
		}
	}
	if len(e.Last) > 0 {
		b.WriteString(" before")
	}
	return b.String()
}

// mostAgo is how many of the latest attempts a message names.
const mostAgo = 10

// mostOpen is how many open breakers of an upstream are known by their keys. With more, the
// end may be told a little early.
const mostOpen = 1000

// breaker tells of the first of an upstream's breakers that opens and of the last that
// closes: they can be kept by key, and there can be many.
func (n *Notifier) breaker(e weir.BreakerEvent) {
	if !n.kinds[BreakerOpen] || e.To == breaker.HalfOpen {
		return
	}
	s := subject{kind: BreakerOpen, upstream: e.Upstream}
	n.mu.Lock()
	open := n.open[e.Upstream]
	_, was := open[e.Key]
	if e.To == breaker.Closed {
		delete(open, e.Key)
	} else if was || len(open) < mostOpen {
		if open == nil {
			open = make(map[string]uint64)
			n.open[e.Upstream] = open
		}
		n.openings++
		open[e.Key] = n.openings
	}
	left := n.left(e.Upstream)
	n.mu.Unlock()
	switch {
	case e.To == breaker.Open && !was:
		n.happened(s, func() string { return "cause: " + e.Why.String() })
	case e.To == breaker.Closed && left == 0:
		n.over(s, "")
	}
}

func (n *Notifier) fallback(e fleet.FallbackEvent) {
	s := subject{kind: Fallback}
	if e.Away {
		n.happened(s, func() string {
			if e.Past && e.For > 0 {
				return fmt.Sprintf("unreachable for %v, longer than the store reserves the parts of processes", e.For.Round(time.Second))
			}
			return ""
		})
		return
	}
	n.over(s, fmt.Sprintf("it was unreachable for %v, and %d units were used in that time", e.For.Round(time.Second), e.Spent))
}

// ending is how an attempt ended, in words that the upstream cannot choose freely.
func ending(o *outcome.Outcome) string {
	if _, ok := classify.AWSCode(o.Code); ok && !strings.ContainsAny(o.Code, "#: ") || status(o.Code) {
		return o.Class.String() + " " + o.Code
	}
	return o.Class.String()
}

func status(code string) bool {
	return len(code) == 3 && code[0] >= '1' && code[0] <= '5' && code[1] >= '0' && code[1] <= '9' && code[2] >= '0' && code[2] <= '9'
}
