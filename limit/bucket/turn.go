package bucket

// A Turn is the places given to one caller. They are there when the line has
// reached Place; the lowest of them begins at Low. Most are one stretch,
// (Low, Place]; a turn put together from places that others gave back may have
// gaps, and then it is not known where.
type Turn struct{ Place, Low, Cost int64 }

// Whole reports whether the turn is one stretch without gaps.
func (t Turn) Whole() bool { return t.Place-t.Low == t.Cost }

// Top is the part of a turn that is left when all but cost places were used: the
// lowest are used first.
func (t Turn) Top(cost int64) Turn {
	_, top := t.split(t.Cost - cost)
	return top
}

// split parts a turn in its lowest n places and the rest. Of a turn with gaps
// each part may have places anywhere in it.
func (t Turn) split(n int64) (bottom, top Turn) {
	bottom, top = t, t
	bottom.Cost, top.Cost = n, t.Cost-n
	if t.Whole() {
		bottom.Place, top.Low = t.Low+n, t.Low+n
	}
	return bottom, top
}

// And is two turns taken together.
func (t Turn) And(u Turn) Turn {
	switch {
	case t.Cost == 0:
		return u
	case u.Cost == 0:
		return t
	}
	return Turn{max(t.Place, u.Place), min(t.Low, u.Low), t.Cost + u.Cost}
}

// above is what certainly lies above low: of a turn that begins under it, at most
// low-Low places lie there.
func (t Turn) above(low int64) Turn {
	if under := low - t.Low; under > 0 {
		t.Cost, t.Low = max(0, t.Cost-under), low
	}
	return t
}

// there is how many of the places are certainly there when the line has reached
// at.
func (t Turn) there(at int64) int64 {
	switch {
	case t.Place <= at:
		return t.Cost
	case t.Whole():
		return max(0, at-t.Low)
	}
	return 0
}
