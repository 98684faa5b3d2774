package delivery

import "maps"

// unavailable follows the name of what is not there.
const unavailable = " service unavailable: "

// isAway notes that the upstream's breaker lets nothing through.
func (p *pump) isAway() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		p.good = 0
	}
	p.away = true
}

// away are the upstreams whose breakers let nothing through, and what dead letters say of that.
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
