package weircw

import "github.com/seed1158cd35/weir"

// An Answer is a language model's answer that has begun.
type Answer struct {
	Upstream, Tier string
	Degraded       bool   // it came from a lower tier than the first
	Cache          string // result of the cache look-up: hit, stale, old, similar or miss; "" if not cached
}

// Answered counts an answer.
func (e *Exporter) Answered(a Answer) {
	s := weir.Subject{Upstream: a.Upstream}
	e.count(key{kind: answered, word: a.Tier}, &s)
	if a.Degraded {
		e.count(key{kind: fallback, word: a.Tier}, &s)
	}
	switch a.Cache {
	case "":
	case "miss":
		e.count(key{kind: cacheMiss}, &s)
	default:
		e.count(key{kind: cacheHit}, &s)
	}
}

// Picos is the number of cost units in one unit of the price table's currency.
const Picos = 1e12

// Used counts the tokens of a model's answer, and their cost in Picos.
func (e *Exporter) Used(upstream string, input, output, picos int64) {
	s := weir.Subject{Upstream: upstream}
	for k, n := range map[kind]int64{inputTokens: input, outputTokens: output, cost: picos} {
		if n > 0 {
			e.countN(key{kind: k}, &s, n)
		}
	}
}

// Cascades publishes which upstreams have a cascade without an available model. down returns their names.
func (e *Exporter) Cascades(down func() []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

// chainsDown is called without mu, because down may take another lock.
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
