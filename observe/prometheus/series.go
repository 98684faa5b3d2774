package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/breaker"
	sharded "github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// series maps the key of each event, which has what its labels are made of, to its series.
type series struct {
	retried  *sharded.Book[retriedKey, prometheus.Counter]
	heldBack *sharded.Book[heldBackKey, prometheus.Counter]
	gaveUp   *sharded.Book[gaveUpKey, prometheus.Counter]
	breaker  *sharded.Book[breakerKey, prometheus.Counter]
	paused   *sharded.Book[pauseKey, prometheus.Counter]
	lifted   *sharded.Book[liftedKey, prometheus.Counter]
	damaged  *sharded.Book[string, prometheus.Counter]
	paced    *sharded.Book[pacedKey, prometheus.Counter]
	broken   *sharded.Book[brokenKey, prometheus.Counter] // violations
}

type (
	retriedKey struct {
		upstream, operation string
		class               outcome.Class
	}
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

func (s *series) begin(m *Metrics) {
	v := &m.vectors
	s.retried = sharded.NewBook(&m.mu, func(k retriedKey) prometheus.Counter {
		return v.retries.WithLabelValues(label(k.upstream), label(k.operation), k.class.String())
	})
	s.heldBack = sharded.NewBook(&m.mu, func(k heldBackKey) prometheus.Counter {
		return v.heldBack.WithLabelValues(label(k.upstream), label(k.operation))
	})
	s.gaveUp = sharded.NewBook(&m.mu, func(k gaveUpKey) prometheus.Counter {
		return v.gaveUp.WithLabelValues(label(k.upstream), label(k.operation), k.reason)
	})
	s.breaker = sharded.NewBook(&m.mu, func(k breakerKey) prometheus.Counter {
		return v.breaker.WithLabelValues(label(k.upstream), k.from.String(), k.to.String())
	})
	s.paused = sharded.NewBook(&m.mu, func(k pauseKey) prometheus.Counter {
		return v.pauses.WithLabelValues(label(k.upstream), label(k.operation), label(k.limit), k.by)
	})
	s.lifted = sharded.NewBook(&m.mu, func(k liftedKey) prometheus.Counter {
		return v.lifted.WithLabelValues(label(k.upstream), k.by)
	})
	s.damaged = sharded.NewBook(&m.mu, func(upstream string) prometheus.Counter {
		return v.damaged.WithLabelValues(label(upstream))
	})
	s.paced = sharded.NewBook(&m.mu, func(k pacedKey) prometheus.Counter {
		return v.paces.WithLabelValues(label(k.upstream), label(k.limit), k.direction)
	})
	s.broken = sharded.NewBook(&m.mu, func(k brokenKey) prometheus.Counter {
		return v.violations.WithLabelValues(label(k.upstream), label(k.operation), label(k.limit))
	})
}

func (s *series) clear() {
	s.retried.Clear()
	s.heldBack.Clear()
	s.gaveUp.Clear()
	s.breaker.Clear()
	s.paused.Clear()
	s.lifted.Clear()
	s.damaged.Clear()
	s.paced.Clear()
	s.broken.Clear()
}
