package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// series are the books of all events. The key of each is what its labels are
// made of, its entry the series to which the event belongs.
type series struct {
	decided  *book[decidedKey, prometheus.Counter]
	waited   *book[waitedKey, waits]
	ended    *book[endedKey, timed]
	done     *book[doneKey, timed]
	retried  *book[endedKey, prometheus.Counter]
	heldBack *book[heldBackKey, prometheus.Counter]
	gaveUp   *book[gaveUpKey, prometheus.Counter]
	breaker  *book[breakerKey, prometheus.Counter]
	paused   *book[pauseKey, prometheus.Counter]
	lifted   *book[liftedKey, prometheus.Counter]
	damaged  *book[string, prometheus.Counter]
	paced    *book[pacedKey, prometheus.Counter]
	broken   *book[brokenKey, prometheus.Counter] // violations
}

type (
	decidedKey struct{ upstream, operation, limit, decision string }
	waitedKey  struct{ upstream, limit string }
	endedKey   struct {
		upstream, operation string
		class               outcome.Class
	}
	doneKey     struct{ upstream, operation, result string }
	heldBackKey struct{ upstream, operation string }
	gaveUpKey   struct{ upstream, operation, reason string }
	breakerKey  struct {
		upstream string
		from, to breaker.Phase
	}
	pauseKey  struct{ upstream, operation, limit, by string }
	liftedKey struct{ upstream, by string }
	brokenKey struct{ upstream, operation, limit string }
	pacedKey  struct{ upstream, limit, direction string }
)

// timed counts things and how long they took.
type timed struct {
	count prometheus.Counter
	took  prometheus.Observer
}

// waits are how long attempts waited, and how late they woke.
type waits struct{ took, late prometheus.Observer }

func (s *series) begin(m *Metrics) {
	v := &m.vectors
	s.decided = newBook(&m.mu, func(k decidedKey) prometheus.Counter {
		return v.decisions.WithLabelValues(label(k.upstream), label(k.operation), label(k.limit), k.decision)
	})
	s.waited = newBook(&m.mu, func(k waitedKey) waits {
		return waits{v.wait.WithLabelValues(label(k.upstream), label(k.limit)), v.late.WithLabelValues(label(k.upstream), label(k.limit))}
	})
	s.ended = newBook(&m.mu, func(k endedKey) timed {
		class := word(k.class)
		return timed{
			v.attempts.WithLabelValues(label(k.upstream), label(k.operation), class),
			v.attempt.WithLabelValues(label(k.upstream), class),
		}
	})
	s.done = newBook(&m.mu, func(k doneKey) timed {
		return timed{
			v.calls.WithLabelValues(label(k.upstream), label(k.operation), k.result),
			v.call.WithLabelValues(label(k.upstream), k.result),
		}
	})
	s.beginSeldom(m)
}

// beginSeldom is begin for what happens less often than calls do.
func (s *series) beginSeldom(m *Metrics) {
	v := &m.vectors
	s.retried = newBook(&m.mu, func(k endedKey) prometheus.Counter {
		return v.retries.WithLabelValues(label(k.upstream), label(k.operation), k.class.String())
	})
	s.heldBack = newBook(&m.mu, func(k heldBackKey) prometheus.Counter {
		return v.heldBack.WithLabelValues(label(k.upstream), label(k.operation))
	})
	s.gaveUp = newBook(&m.mu, func(k gaveUpKey) prometheus.Counter {
		return v.gaveUp.WithLabelValues(label(k.upstream), label(k.operation), k.reason)
	})
	s.breaker = newBook(&m.mu, func(k breakerKey) prometheus.Counter {
		return v.breaker.WithLabelValues(label(k.upstream), k.from.String(), k.to.String())
	})
	s.paused = newBook(&m.mu, func(k pauseKey) prometheus.Counter {
		return v.pauses.WithLabelValues(label(k.upstream), label(k.operation), label(k.limit), k.by)
	})
	s.lifted = newBook(&m.mu, func(k liftedKey) prometheus.Counter {
		return v.lifted.WithLabelValues(label(k.upstream), k.by)
	})
	s.damaged = newBook(&m.mu, func(upstream string) prometheus.Counter {
		return v.damaged.WithLabelValues(label(upstream))
	})
	s.paced = newBook(&m.mu, func(k pacedKey) prometheus.Counter {
		return v.paces.WithLabelValues(label(k.upstream), label(k.limit), k.direction)
	})
	s.broken = newBook(&m.mu, func(k brokenKey) prometheus.Counter {
		return v.violations.WithLabelValues(label(k.upstream), label(k.operation), label(k.limit))
	})
}

func (s *series) clear() {
	s.decided.clear()
	s.waited.clear()
	s.ended.clear()
	s.done.clear()
	s.retried.clear()
	s.heldBack.clear()
	s.gaveUp.clear()
	s.breaker.clear()
	s.paused.clear()
	s.lifted.clear()
	s.damaged.clear()
	s.paced.clear()
	s.broken.clear()
}
