package inflight

import "time"

// start is the bound as long as nothing is known that can be believed. It grows by the
// clock, so that an upstream whose answers take long need not answer first, until
// something is lost: then it may be an upstream that stands still.
func (s *state) start(now time.Duration) int64 {
	if !s.starting() || s.learnt.began == 0 {
		return first * scale
	}
	return first*scale + s.gained + portion(uint64(now-s.learnt.began), perSecond*scale, uint64(time.Second))
}

// starting reports whether little is known, and nothing bad.
func (s *state) starting() bool { return !s.learnt.settled && s.bad == 0 }
