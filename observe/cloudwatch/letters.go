package weircw

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Deliveries publishes the number of dead letters of a queue, which counts returns.
func (e *Exporter) Deliveries(counts func(context.Context) ([]delivery.Count, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts = counts
}

// counting is the timeout for counts of the queue.
const counting = 2 * time.Second

// dead returns the current dead letters by upstream, or none if they are unknown. It is called without mu, because a queue may
// take long.
func (e *Exporter) dead() (all []delivery.Count) {
	e.mu.Lock()
	counts := e.counts
	e.mu.Unlock()
	if counts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), counting)
	defer cancel()
	found, err := counts(ctx)
	if err != nil {
		return nil
	}
	for _, c := range found {
		if c.Status == delivery.Failed && c.N > 0 && !e.ignored[c.Upstream] {
			all = append(all, c)
		}
	}
	return all
}

func collectDead(s *table, dead []delivery.Count) {
	for _, c := range dead {
		var at [len(Dimensions)]string
		at[Upstream.index()] = c.Upstream
		s.add(DeadLetters, &at, value{number: float64(c.N)})
		s.add(DeadLetterAge, &at, value{number: max(0, time.Since(c.Oldest).Seconds())})
	}
}
