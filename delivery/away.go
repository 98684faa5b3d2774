package delivery

import "maps"

// unavailable follows the name of an unavailable upstream in the Detail of a dead letter.
const unavailable = " service unavailable: "

// isAway notes that the upstream's breaker refused a call.
func (p *pump) isAway() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		p.good = 0
	}
	p.away = true
}

// away returns the upstreams whose breakers refuse calls, with the beginning of the Detail of their dead letters.
func (w *Worker) away() map[string]string {
	w.mu.Lock()
	pumps := maps.Clone(w.pumps)
	w.mu.Unlock()
	all := make(map[string]string)
	for upstream, p := range pumps {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away && w.Sender(upstream) != nil {
			all[upstream] = w.nameOf(upstream) + unavailable
		}
	}
	return all
}
