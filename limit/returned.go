package limit

import (
	"time"
)

// back returns n units of a turn. They first pay debts. The rest goes back to the line if its positions are still the
// last ones taken, and to the returned units otherwise.
func (p *places) back(now time.Duration, t Turn, n int64) {
	cost := t.Cost
	if unit := p.line.Load().Unit(); n < cost/unit {
		cost = n * unit
	}
	if cost <= 0 {
		return
	}
	back := t.Top(p.redeem(now, cost))
	if back.Cost > 0 && (!back.Whole() || !p.booked.CompareAndSwap(back.Place, back.Low)) {
		p.grow().returned.put(back)
	}
	p.absorb()
}

// absorb gives returned units back to the line while they are the last positions taken.
func (p *places) absorb() {
	x := p.more.Load()
	if x == nil {
		return
	}
	for {
		booked := p.booked.Load()
		last, ok := x.returned.pull(booked)
		if !ok {
			return
		}
		if !p.booked.CompareAndSwap(booked, last.Low) { // another call has taken positions after them
			x.returned.put(last)
			return
		}
	}
}
