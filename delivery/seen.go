package delivery

// A seen is how far a scan got before it went back to groups that opened. Every due delivery before that point belongs
// to these groups or is in hand. When all of these groups are closed again, the scan continues at that point. Otherwise
// a limit that lets one call through now and then would cause repeated reads of its whole backlog.
type seen struct {
	far      Mark
	reopened map[string]bool
}

// opensAgain notes that the scan goes back from a mark because a group opened.
func (s *seen) opensAgain(group string, from Mark) {
	if s.reopened == nil {
		s.reopened = make(map[string]bool)
	}
	s.reopened[group] = true
	if s.far.Before(from) {
		s.far = from
	}
}

// closesAgain returns where the scan at a mark continues after a group has closed.
func (s *seen) closesAgain(group string, at Mark) Mark {
	if delete(s.reopened, group); len(s.reopened) == 0 && at.Before(s.far) {
		at = s.far
	}
	return at
}
