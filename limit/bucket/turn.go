package bucket

// A Turn contains the positions granted to one caller. They are available when the line has reached Place. The lowest
// begins at Low. Most turns are one stretch, (Low, Place]. A turn that consists of returned positions may have gaps
// at unknown positions.
type Turn struct{ Place, Low, Cost int64 }

// Whole reports whether the turn is one stretch without gaps.
func (t Turn) Whole() bool { return t.Place-t.Low == t.Cost }

// Top returns the part of a turn that remains when all positions except cost were used, the lowest first.
func (t Turn) Top(cost int64) Turn {
	_, top := t.split(t.Cost - cost)
	return top
}

// split divides a turn into its lowest n positions and the rest. If the turn has gaps, each part may have its
// positions anywhere in it.
func (t Turn) split(n int64) (bottom, top Turn) {
	bottom, top = t, t
	bottom.Cost, top.Cost = n, t.Cost-n
	if t.Whole() {
		bottom.Place, top.Low = t.Low+n, t.Low+n
	}
	return bottom, top
}

// And returns the union of two turns.
func (t Turn) And(u Turn) Turn {
	switch {
	case t.Cost == 0:
		return u
	case u.Cost == 0:
		return t
	}
	return Turn{max(t.Place, u.Place), min(t.Low, u.Low), t.Cost + u.Cost}
}

// above returns the part that certainly lies above low. If a turn begins below low, at most low-Low positions lie
// there.
func (t Turn) above(low int64) Turn {
	if under := low - t.Low; under > 0 {
		t.Cost, t.Low = max(0, t.Cost-under), low
	}
	return t
}

// there returns how many of the positions are certainly available when the line has reached at.
func (t Turn) there(at int64) int64 {
	switch {
	case t.Place <= at:
		return t.Cost
	case t.Whole():
		return max(0, at-t.Low)
	}
	return 0
}
