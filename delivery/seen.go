package delivery

// A seen is how far a look has come that went back, as groups had been opened: what is due up to there is of these groups, or in hand. When
// all of them are closed again the look goes on from there. So a limit that lets one more go now and then does not have all
// read that waits for it, which may be what has come in hours.
type seen struct {
	far      Mark
	reopened map[string]bool
}

// opensAgain notes that the look goes back for a group from where it has come.
func (s *seen) opensAgain(group string, from Mark) {
	if s.reopened == nil {
		s.reopened = make(map[string]bool)
	}
	s.reopened[group] = true
	if s.far.Before(from) {
		s.far = from
	}
}

// closesAgain is where the look goes on that has come to a mark, when a group is closed.
func (s *seen) closesAgain(group string, at Mark) Mark {
	if delete(s.reopened, group); len(s.reopened) == 0 && at.Before(s.far) {
		at = s.far
	}
	return at
}
