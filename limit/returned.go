package limit

import (
	"github.com/seed1158cd35/weir/limit/bucket"
)

// putReturned keeps places that came back for whoever comes next. The list is bounded: where it is full
// the two that are closest become one, worth what the lower of them is (bucket.Returned.Add), so that
// no limit is passed for it.
func (m *Limiter) putReturned(t bucket.Turn) {
	for {
		old := m.returned()
		next := bucket.Returned{t}
		if old != nil {
			next = old.Add(t)
		}
		if m.grow().returned.CompareAndSwap(old, &next) {
			return
		}
	}
}

// gather takes cost places, first from those that came back and the rest from
// the line. If others are faster it puts back what it has got. A turn put together in this way
// may have gaps: it is not known where its places are, so each is worth what the lowest is.
func (m *Limiter) gather(line *bucket.Line, at, cost int64) (Turn, bool) {
	low := line.Low(at)
	if m.returnedLeft(at, low)+max(0, at-max(m.booked.Load(), low)) < cost {
		return Turn{}, false
	}
	got := m.fromReturned(at, low, cost)
	for got.Cost < cost {
		booked := m.booked.Load()
		t := line.Next(booked, at, cost-got.Cost)
		if t.Place > at { // somebody was faster
			if got.Cost > 0 {
				m.putReturned(got)
			}
			return Turn{}, false
		}
		if m.booked.CompareAndSwap(booked, t.Place) {
			got = got.And(t)
		}
	}
	return Turn{got}, true
}

// returnedLeft is how many places that came back may be used when the line has reached at and the
// burst begins at low, both in places of the bucket's axis. It throws the list
// away when the burst has passed all of it.
func (m *Limiter) returnedLeft(at, low int64) int64 {
	old := m.returned()
	if old == nil {
		return 0
	}
	left := old.Left(at, low)
	if left == 0 && old.Passed(low) {
		m.grow().returned.CompareAndSwap(old, nil)
	}
	return left
}

// fromReturned takes up to so many places of those that came back, at these limits of the burst.
func (m *Limiter) fromReturned(at, low, cost int64) bucket.Turn {
	for {
		old := m.returned()
		if old == nil || old.Left(at, low) == 0 {
			return bucket.Turn{}
		}
		rest, got := old.Take(at, low, cost)
		if m.swapReturned(old, rest) {
			return got
		}
	}
}

// absorb has the line give again what came back and stands last.
func (m *Limiter) absorb() {
	for {
		booked := m.booked.Load()
		last, ok := m.pull(booked)
		if !ok {
			return
		}
		if !m.booked.CompareAndSwap(booked, last.Low) { // somebody stands behind it now
			m.putReturned(last)
			return
		}
	}
}

// pull takes out of the places that came back the stretch that ends at the place; false if there is none.
func (m *Limiter) pull(place int64) (bucket.Turn, bool) {
	for {
		old := m.returned()
		if old == nil {
			return bucket.Turn{}, false
		}
		rest, got, ok := old.Touching(place)
		if !ok {
			return bucket.Turn{}, false
		}
		if m.swapReturned(old, rest) {
			return got, true
		}
	}
}

// swapReturned puts a list in the place of another; an empty one is nil, so that decisions take the
// short path again.
func (m *Limiter) swapReturned(old *bucket.Returned, rest bucket.Returned) bool {
	if len(rest) == 0 {
		return m.grow().returned.CompareAndSwap(old, nil)
	}
	return m.grow().returned.CompareAndSwap(old, &rest)
}
