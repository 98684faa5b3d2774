package bucket

import "slices"

// A Spare is places that were given away and came back while others already
// stood behind them. Whoever comes next takes them before new ones. It is an
// immutable list; nil is empty.
type Spare []Turn

// kept is how many separate entries a Spare holds; beyond it two become one,
// which can only make them worth less.
const kept = 16

// Add is the list with a turn that came back.
func (s Spare) Add(t Turn) Spare {
	if n := len(s); n >= kept {
		last := s[n-1]
		t = Turn{max(last.Place, t.Place), min(last.Low, t.Low), last.Cost + t.Cost}
		s = s[:n-1]
	}
	return slices.Concat(s, Spare{t})
}

// Take takes up to cost places that are there when the line has reached at and
// have not been passed by the burst, whose start is low. It returns what is left
// of the list and the turn, of cost 0 if there was nothing.
func (s Spare) Take(at, low, cost int64) (rest Spare, got Turn) {
	got.Low = at
	for _, t := range s {
		// Of a turn that begins under low, at most low-Low places lie there.
		if under := low - t.Low; under > 0 {
			t.Cost, t.Low = t.Cost-under, low
		}
		if t.Cost <= 0 {
			continue
		}
		if t.Place <= at && got.Cost < cost {
			n := min(t.Cost, cost-got.Cost)
			got = Turn{max(got.Place, t.Place), min(got.Low, t.Low), got.Cost + n}
			t.Cost -= n
		}
		if t.Cost > 0 {
			rest = append(rest, t)
		}
	}
	return rest, got
}

// Ahead takes cost places for somebody who has to wait in any case and would
// otherwise wait for place: the first entry that comes before that.
func (s Spare) Ahead(at, cost, place int64) (rest Spare, got Turn, ok bool) {
	best := -1
	for i, t := range s {
		if t.Place > at && t.Place < place && t.Cost >= cost {
			best, place = i, t.Place
		}
	}
	if best < 0 {
		return s, Turn{}, false
	}
	t := s[best]
	rest = slices.Delete(slices.Clone(s), best, best+1)
	if t.Place-t.Low != t.Cost || t.Cost == cost {
		return rest, t, true
	}
	got = Turn{t.Low + cost, t.Low, cost}
	return append(rest, Turn{t.Place, got.Place, t.Cost - cost}), got, true
}

// Left is how many places Take could give.
func (s Spare) Left(at, low int64) int64 {
	_, got := s.Take(at, low, 1<<62)
	return got.Cost
}
