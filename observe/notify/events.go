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

// Events returns the events to pass to an upstream, so that the notifier sends messages about it.
func (n *Notifier) Events() weir.Events {
	return weir.Events{Refused: n.refused, Rejected: n.rejected, Retried: n.retried, GaveUp: n.gaveUp, Violated: n.violated, Breaker: n.breaker}
}

// Fleet returns the events to pass to fleet.New, so that the notifier reports the loss of its store.
func (n *Notifier) Fleet() fleet.Events { return fleet.Events{Fallback: n.fallback} }

// Died reports deliveries to an upstream that became dead letters. reason is a Reason of package delivery.
func (n *Notifier) Died(upstream, reason string, number int) {
	n.happened(subject{kind: DeadLetter, upstream: upstream}, func() string { return fmt.Sprintf("%d, reason %s", number, reason) })
}

// Failed reports that weir itself could not do what a call needs. reason is one of a fixed few. id is the correlation ID of the
// call in the log.
func (n *Notifier) Failed(upstream, reason, id string) {
	n.happened(subject{kind: System, upstream: upstream}, func() string { return reason + called(id) })
}

// called formats the ID of a call, which the caller may have chosen.
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
	case "canceled", "not_retryable", string(weir.QuotaExhausted): // the caller left; not a matter of retries; reported by refused
		return
	case "quota":
		s.kind = Quota // the upstream's quota
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

// standing formats the state when the upstream throttled: the limits, the attempts in flight, and the latest attempts.
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

// mostAgo is the maximum number of latest attempts in a message.
const mostAgo = 10

// mostOpen is the maximum number of open breakers per upstream that are tracked by key. With more, the end can be reported early.
const mostOpen = 1000

// breaker reports when the first breaker of an upstream opens and when the last one closes. There can be many breakers, one for
// each key.
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

// ending formats the result of an attempt. It omits codes that the upstream could choose freely.
func ending(o *outcome.Outcome) string {
	if _, ok := classify.AWSCode(o.Code); ok && !strings.ContainsAny(o.Code, "#: ") || status(o.Code) {
		return o.Class.String() + " " + o.Code
	}
	return o.Class.String()
}

func status(code string) bool {
	return len(code) == 3 && code[0] >= '1' && code[0] <= '5' && code[1] >= '0' && code[1] <= '9' && code[2] >= '0' && code[2] <= '9'
}
