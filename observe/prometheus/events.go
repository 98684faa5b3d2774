package weirprom

import (
	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// Events returns the events to pass to an upstream so that its calls are counted. The upstream itself counts what happens on
// every call, and a scrape reads those counts. An event here is rare: it costs two look-ups and an atomic operation, and
// allocates nothing once its series exists.
func (m *Metrics) Events() weir.Events {
	return weir.Events{
		Counts:   m.counts,
		Retried:  m.retried,
		HeldBack: m.heldBack,
		GaveUp:   m.gaveUp,
		Breaker:  m.breakerChanged,
		Paused:   m.paused,
		Resumed:  m.resumed,
		Damaged:  m.damaged,
		Paced:    m.paced,

		Violated: m.violated,
	}
}

func (m *Metrics) retried(e weir.Retried) {
	m.series.retried.Get(retriedKey{e.Upstream, e.Operation, e.Outcome.Class}).Inc()
}

func (m *Metrics) heldBack(e weir.HeldBack) {
	m.series.heldBack.Get(heldBackKey{e.Upstream, e.Operation}).Inc()
}

func (m *Metrics) gaveUp(e weir.GaveUp) {
	m.series.gaveUp.Get(gaveUpKey{e.Upstream, e.Operation, observe.Why(e.Why)}).Inc()
}

// ordinaryChanges are the changes of a breaker that happen without an operator.
var ordinaryChanges = [...]struct{ from, to breaker.Phase }{
	{breaker.Closed, breaker.Open},
	{breaker.Open, breaker.HalfOpen},
	{breaker.HalfOpen, breaker.Open},
	{breaker.HalfOpen, breaker.Closed},
}

func (m *Metrics) breakerChanged(e weir.BreakerEvent) {
	for _, c := range ordinaryChanges { // for Metrics.beginAll's reason
		m.series.breaker.Get(breakerKey{e.Upstream, c.from, c.to})
	}
	m.series.breaker.Get(breakerKey{e.Upstream, e.From, e.To}).Inc()
}

func (m *Metrics) paused(e weir.PauseEvent) {
	m.series.paused.Get(pauseKey{e.Upstream, e.Operation, e.Limit, e.By}).Inc()
}

func (m *Metrics) resumed(e weir.PauseEvent) {
	m.series.lifted.Get(liftedKey{e.Upstream, e.By}).Inc()
}

func (m *Metrics) damaged(e weir.DamageEvent) { m.series.damaged.Get(e.Upstream).Inc() }

func (m *Metrics) paced(e weir.PaceEvent) {
	direction := "up"
	if e.Class == outcome.Throttled {
		direction = "down"
	}
	m.series.paced.Get(pacedKey{e.Upstream, e.Limit, direction}).Inc()
}

// violated counts one violation for each limit that the call was charged to: the limit that differs from the upstream's is
// unknown.
func (m *Metrics) violated(e weir.Violation) {
	for i := range e.Levels {
		m.series.broken.Get(brokenKey{e.Upstream, e.Operation, e.Levels[i].Rule.Name}).Inc()
	}
}

// JobFailedOpen counts a job that was started although its upstream's state could not be read.
func (m *Metrics) JobFailedOpen(upstream string) {
	m.vectors.failedOpen.WithLabelValues(label(upstream)).Inc()
}
