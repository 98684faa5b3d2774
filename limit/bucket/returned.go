package bucket

import "slices"

// A Returned is places that were given away and came back while others after them
// had been given away. Whoever comes next takes them before new ones. It is an
// immutable list in the order of Place; nil is empty.
type Returned []Turn

// kept is how many separate entries a Returned holds; beyond it the two that lie
// closest become one with a gap, which can only make them worth less.
const kept = 64

// Add is the list with a turn that came back.
func (s Returned) Add(t Turn) Returned {
	i := 0
	for i < len(s) && s[i].Place < t.Place {
		i++
	}
	next := slices.Insert(slices.Clone(s), i, t).joined()
	if len(next) > kept {
		i := next.closest()
		next = slices.Replace(next, i, i+2, next[i].And(next[i+1])).joined()
	}
	return next
}

// joined is the list with every stretch without gaps as one entry. It writes over
// s.
func (s Returned) joined() Returned {
	next := s[:0]
	for _, t := range s {
		all := t
		for k := len(next) - 1; k >= 0 && next[k].Place >= all.Low; k-- {
			if all = all.And(next[k]); all.Whole() {
				t, next = all, next[:k]
			}
		}
		next = append(next, t)
	}
	return next
}

// closest is the entry that leaves the smallest gap if it becomes one with the
// next.
func (s Returned) closest() (best int) {
	smallest := int64(End)
	for i := range len(s) - 1 {
		both := s[i].And(s[i+1])
		if gap := both.Place - both.Low - both.Cost; gap < smallest {
			best, smallest = i, gap
		}
	}
	return best
}

// Take takes up to cost places that are there when the line has reached at and
// have not been passed by the burst, whose start is low. It returns what is left
// of the list and the turn, of cost 0 if there was nothing.
func (s Returned) Take(at, low, cost int64) (rest Returned, got Turn) {
	for _, t := range s {
		t = t.above(low)
		if n := min(t.there(at), cost-got.Cost); n > 0 {
			var part Turn
			part, t = t.split(n)
			got = got.And(part)
		}
		if t.Cost > 0 {
			rest = append(rest, t)
		}
	}
	return rest, got
}

// Redeem takes up to cost places that the line has not reached yet, the last ones first.
// It returns what is left of the list, without what the line has reached, and what was
// taken.
func (s Returned) Redeem(at, cost int64) (rest, got Returned) {
	for i := len(s) - 1; i >= 0; i-- {
		t := s[i].above(at)
		if n := min(t.Cost, cost); n > 0 {
			var part Turn
			t, part = t.split(t.Cost - n)
			got = append(got, part)
			cost -= n
		}
		if t.Cost > 0 {
			rest = append(rest, t)
		}
	}
	slices.Reverse(rest)
	return rest, got
}

// Left is how many places Take could give.
func (s Returned) Left(at, low int64) (left int64) {
	for _, t := range s {
		left += t.above(low).there(at)
	}
	return left
}

// Passed reports whether the burst, whose start is low, has passed all of it.
func (s Returned) Passed(low int64) bool {
	for _, t := range s {
		if t.above(low).Cost > 0 {
			return false
		}
	}
	return true
}

// Touching takes out the stretch that ends exactly at the place.
func (s Returned) Touching(place int64) (rest Returned, got Turn, ok bool) {
	for i, t := range s {
		if t.Place == place && t.Whole() {
			return slices.Delete(slices.Clone(s), i, i+1), t, true
		}
	}
	return s, Turn{}, false
}
