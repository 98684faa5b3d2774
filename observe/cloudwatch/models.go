package weircw

import "github.com/seed1158cd35/weir"

// Answered counts an answer of a language model that began. degraded says that it came from below the first tier.
func (e *Exporter) Answered(upstream string, degraded bool) {
	s := weir.Subject{Upstream: upstream}
	e.count(key{kind: answered}, &s)
	if degraded {
		e.count(key{kind: fallback}, &s)
	}
}

// Cascades publishes which upstreams have a cascade none of whose models can be asked, as down says.
func (e *Exporter) Cascades(down func() []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

// chainsDown is called without mu: whom it asks may have a lock of its own.
func (e *Exporter) chainsDown() []string {
	e.mu.Lock()
	down := e.down
	e.mu.Unlock()
	if down == nil {
		return nil
	}
	return down()
}

func (e *Exporter) collectDown(s *table, down []string) {
	for _, upstream := range down {
		if !e.ignored[upstream] {
			var at [len(Dimensions)]string
			at[Upstream.index()] = upstream
			s.add(ModelChainDown, &at, value{number: 1})
		}
	}
}
