package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// longestDebt is how many bursts may be owed. A broken answer must not stop a limit for years.
const longestDebt = bucket.LongestDebt

// owe is the one thing that gives away what is not there yet.
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

// redeem has places that came back pay for what is owed still: the places of the line
// that stood for it are free in their stead, and those are later ones. It returns what
// is left of the cost.
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
