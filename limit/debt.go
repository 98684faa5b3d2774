package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// longestDebt is how many bursts may be owed. A broken answer must not stop a limit for years.
const longestDebt = bucket.LongestDebt

// Owe charges n units beyond what was taken: they are used already, so nobody is
// asked, and those who come next wait until they are made up for. Places that came back
// pay for them first. This is the one thing that is given away before it is there. Of a bucket
// 16 bursts are owed at most; of a rolling limit a debt counts for as long as its window, of a
// calendar limit until the window ends. Below 1 it does nothing.
func (m *Limiter) Owe(now time.Duration, n int64) {
	if r := m.shaped(); r != nil {
		r.owe(now, n)
		return
	}
	line := m.line.Load()
	cost := line.Cost(min(n, longestDebt*line.Full()))
	at := line.At(now)
	m.pour(line, at)
	cost -= m.fromReturned(at, line.Low(at), cost).Cost
	for cost > 0 {
		line, booked := m.line.Load(), m.booked.Load()
		if booked == retired {
			return
		}
		at := line.At(now)
		t := line.Next(booked, at, cost)
		t.Place = max(booked, min(t.Place, at+longestDebt*line.Depth()))
		if m.booked.CompareAndSwap(booked, t.Place) {
			if t.Cost = t.Place - t.Low; t.Cost > 0 && t.Place > at {
				m.indebt(t)
			}
			return
		}
	}
}

// indebt notes, for redeem, places of the line that stand for what was used before.
func (m *Limiter) indebt(t bucket.Turn) {
	for {
		old := m.grow().owed.Load()
		next := bucket.Returned{t}
		if old != nil {
			next = old.Add(t)
		}
		if m.grow().owed.CompareAndSwap(old, &next) {
			return
		}
	}
}

// redeem has places that came back pay for what is owed still: the places of the line
// that stood for it are free in their stead, and those are later ones. It returns what
// is left of the cost.
func (m *Limiter) redeem(now time.Duration, cost int64) int64 {
	x := m.more.Load()
	if x == nil {
		return cost
	}
	for {
		old := x.owed.Load()
		if old == nil {
			return cost
		}
		rest, freed := old.Redeem(m.line.Load().At(now), cost)
		next := &rest
		if len(rest) == 0 {
			next = nil
		}
		if !x.owed.CompareAndSwap(old, next) {
			continue
		}
		for _, t := range freed {
			cost -= t.Cost
			m.putReturned(t)
		}
		return cost
	}
}
