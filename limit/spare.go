package limit

import "github.com/seed1158cd35/weir/bucket"

// putSpare keeps places that came back for whoever comes next.
func (m *Limiter) putSpare(t bucket.Turn) {
	for {
		old := m.spare.Load()
		next := bucket.Spare{t}
		if old != nil {
			next = old.Add(t)
		}
		if m.spare.CompareAndSwap(old, &next) {
			return
		}
	}
}

// takeSpare takes cost places, first from those that came back and the rest
// from the line.
func (m *Limiter) takeSpare(line *bucket.Line, at, cost int64) (Turn, bool) {
	got := m.fromSpare(at, at-line.Depth(), cost)
	for got.Cost < cost {
		booked := m.booked.Load()
		t := line.Next(booked, at, cost-got.Cost)
		if t.Place > at {
			if got.Cost > 0 {
				m.putSpare(got)
			}
			return m.steal(line, at, cost)
		}
		if m.booked.CompareAndSwap(booked, t.Place) {
			got = bucket.Turn{Place: t.Place, Low: min(got.Low, t.Low), Cost: cost}
		}
	}
	return Turn{got}, true
}

func (m *Limiter) fromSpare(at, low, cost int64) bucket.Turn {
	for {
		old := m.spare.Load()
		if old == nil {
			return bucket.Turn{Low: at}
		}
		rest, got := old.Take(at, low, cost)
		if m.swapSpare(old, rest) {
			return got
		}
	}
}

// ahead takes places that came back and will be there before place.
func (m *Limiter) ahead(at, cost, place int64) (Turn, bool) {
	for {
		old := m.spare.Load()
		if old == nil {
			return Turn{}, false
		}
		rest, got, ok := old.Ahead(at, cost, place)
		if !ok {
			return Turn{}, false
		}
		if m.swapSpare(old, rest) {
			return Turn{got}, true
		}
	}
}

func (m *Limiter) swapSpare(old *bucket.Spare, rest bucket.Spare) bool {
	if len(rest) == 0 {
		return m.spare.CompareAndSwap(old, nil)
	}
	return m.spare.CompareAndSwap(old, &rest)
}
