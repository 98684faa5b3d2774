package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// longestDebt is how many bursts may be owed. A wrong response must not block a limit for years.
const longestDebt = bucket.LongestDebt

// owe is the only method that gives away places that have not come yet.
func (p *places) owe(now time.Duration, n int64) {
	line := p.line.Load()
	cost := line.Cost(min(n, longestDebt*line.Full()))
	at := line.At(now)
	p.pour(line, at)
	cost -= p.grow().returned.take(at, line.Low(at), cost).Cost
	for cost > 0 {
		line, booked := p.line.Load(), p.booked.Load()
		if booked == evicted {
			return
		}
		at := line.At(now)
		t := line.Next(booked, at, cost)
		t.Place = max(booked, min(t.Place, at+longestDebt*line.Depth()))
		if p.booked.CompareAndSwap(booked, t.Place) {
			if t.Cost = t.Place - t.Low; t.Cost > 0 && t.Place > at {
				p.grow().owed.put(t) // for redeem
			}
			return
		}
	}
}

// redeem uses returned places to pay debts. The places of the line that stood for the debt become free instead, and
// these are later ones. It returns the unpaid rest of the cost.
func (p *places) redeem(now time.Duration, cost int64) int64 {
	x := p.more.Load()
	if x == nil {
		return cost
	}
	for {
		old := x.owed.Load()
		if old == nil {
			return cost
		}
		rest, freed := old.Redeem(p.line.Load().At(now), cost)
		next := &rest
		if len(rest) == 0 {
			next = nil
		}
		if !x.owed.CompareAndSwap(old, next) {
			continue
		}
		for _, t := range freed {
			cost -= t.Cost
			x.returned.put(t)
		}
		return cost
	}
}
