package inflight

import "time"

// start returns the bound as long as no measurement is reliable. It grows with time, so that an upstream with a long
// latency need not respond first. It stops growing when an attempt is lost: the upstream may stall.
func (s *state) start(now time.Duration) int64 {
	if !s.starting() || s.learnt.began == 0 {
		return first * scale
	}
	return first*scale + s.gained + portion(uint64(now-s.learnt.began), perSecond*scale, uint64(time.Second))
}

// starting reports whether little is known and no attempt was lost.
func (s *state) starting() bool { return !s.learnt.settled && s.bad == 0 }
