package weirprom

import (
	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// Events is what to give to an upstream, so that its calls are counted. An event
// costs two look-ups and a few atomic operations, and allocates nothing once its
// series exist.
func (m *Metrics) Events() weir.Events {
	return weir.Events{
		Decided:  m.decided,
		Ended:    m.ended,
		Retried:  m.retried,
		HeldBack: m.heldBack,
		GaveUp:   m.gaveUp,
		Done:     m.done,
		Breaker:  m.breakerChanged,
		Paused:   m.paused,
		Resumed:  m.resumed,
		Damaged:  m.damaged,
		Paced:    m.paced,

		Violated: m.violated,
	}
}

// What a decision can be, besides a refusal's reason.
const (
	allowed = "allowed" // at once
	waited  = "waited"  // allowed, after a wait
)

func (m *Metrics) decided(e weir.Decided) {
	k := decidedKey{e.Upstream, e.Operation, e.Limit, allowed}
	switch {
	case e.Refusal != nil:
		k.decision = observe.Reason(e.Refusal.Reason)
	case e.Waited > 0:
		k.decision = waited
	default:
		k.limit = "" // no limit stood in the way
	}
	m.series.decided.get(k).Inc()
	if e.Waited > 0 {
		w := m.series.waited.get(waitedKey{e.Upstream, e.Limit})
		w.took.Observe(e.Waited.Seconds())
		w.late.Observe(e.Late.Seconds())
	}
}

func (m *Metrics) ended(e weir.Ended) {
	class := e.Outcome.Class
	if class == outcome.Rejected && e.Outcome.Unsent {
		class = unsent
	}
	s := m.series.ended.get(endedKey{e.Upstream, e.Operation, class})
	s.count.Inc()
	s.took.Observe(e.Took.Seconds())
}

func (m *Metrics) retried(e weir.Retried) {
	m.series.retried.get(endedKey{e.Upstream, e.Operation, e.Outcome.Class}).Inc()
}

func (m *Metrics) heldBack(e weir.HeldBack) {
	m.series.heldBack.get(heldBackKey{e.Upstream, e.Operation}).Inc()
}

func (m *Metrics) gaveUp(e weir.GaveUp) {
	m.series.gaveUp.get(gaveUpKey{e.Upstream, e.Operation, observe.Why(e.Why)}).Inc()
}

// unsent is the class of attempts that were not sent, as something is wrong on this side: the upstream has
// rejected nothing.
const unsent = outcome.Class(len(outcome.Classes))

func word(c outcome.Class) string {
	if c == unsent {
		return "unsent"
	}
	return c.String()
}

// refused is the result of a call for which no attempt was made.
const refused = "refused"

func (m *Metrics) done(e weir.Done) {
	result := e.Class.String()
	if e.Unsent {
		result = word(unsent)
	}
	if e.Refused && e.Attempts == 0 && e.Class != outcome.Canceled {
		result = refused
	}
	s := m.series.done.get(doneKey{e.Upstream, e.Operation, result})
	s.count.Inc()
	s.took.Observe(e.Took.Seconds())
}

// ordinaryChanges are the changes of a breaker that nobody forces.
var ordinaryChanges = [...]struct{ from, to breaker.Phase }{
	{breaker.Closed, breaker.Open},
	{breaker.Open, breaker.HalfOpen},
	{breaker.HalfOpen, breaker.Open},
	{breaker.HalfOpen, breaker.Closed},
}

func (m *Metrics) breakerChanged(e weir.BreakerEvent) {
	m.series.breaker.get(breakerKey{e.Upstream, e.From, e.To}).Inc()
}

func (m *Metrics) paused(e weir.PauseEvent) {
	m.series.paused.get(pauseKey{e.Upstream, e.Operation, e.Limit, e.By}).Inc()
}

func (m *Metrics) resumed(e weir.PauseEvent) {
	m.series.lifted.get(liftedKey{e.Upstream, e.By}).Inc()
}

func (m *Metrics) damaged(e weir.DamageEvent) { m.series.damaged.get(e.Upstream).Inc() }

func (m *Metrics) paced(e weir.PaceEvent) {
	direction := "up"
	if e.Class == outcome.Throttled {
		direction = "down"
	}
	m.series.paced.get(pacedKey{e.Upstream, e.Limit, direction}).Inc()
}

// violated counts for each limit that the call was charged to: nobody knows which of
// them is not the upstream's.
func (m *Metrics) violated(e weir.Violation) {
	for i := range e.Levels {
		m.series.broken.get(brokenKey{e.Upstream, e.Operation, e.Levels[i].Rule.Name}).Inc()
	}
}
