package limit

import (
	"time"
)

// back has the units pay for debts first; what is left of them goes to the end of the line, or is kept.
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

// absorb has the line give again what came back and stands last.
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
		if !p.booked.CompareAndSwap(booked, last.Low) { // somebody stands behind it now
			x.returned.put(last)
			return
		}
	}
}
