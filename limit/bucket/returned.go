package bucket

import "slices"

// A Returned contains positions that were granted and returned after later positions had been granted. The next
// caller takes them before new ones. It is an immutable list ordered by Place. nil is empty.
type Returned []Turn

// kept is how many separate entries a Returned has. Beyond it, the two closest are merged into one entry with a gap,
// which can only reduce their worth.
const kept = 64

// Add returns the list with another turn.
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

// joined returns the list with every stretch without gaps as one entry. It overwrites s.
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

// closest returns the entry that leaves the smallest gap when it is merged with the next.
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

// Take takes up to cost positions that are available when the line has reached at, and that the burst, which starts
// at low, has not passed. It returns the rest of the list and the turn, which has cost 0 if there was nothing.
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

// Redeem takes up to cost positions that the line has not reached yet, the last ones first. It returns the rest of
// the list, without positions that the line has reached, and the taken positions.
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

// Left returns how many positions Take could take.
func (s Returned) Left(at, low int64) (left int64) {
	for _, t := range s {
		left += t.above(low).there(at)
	}
	return left
}

// Passed reports whether the burst, which starts at low, has passed the whole list.
func (s Returned) Passed(low int64) bool {
	for _, t := range s {
		if t.above(low).Cost > 0 {
			return false
		}
	}
	return true
}

// Touching removes the stretch that ends exactly at the position.
func (s Returned) Touching(place int64) (rest Returned, got Turn, ok bool) {
	for i, t := range s {
		if t.Place == place && t.Whole() {
			return slices.Delete(slices.Clone(s), i, i+1), t, true
		}
	}
	return s, Turn{}, false
}
