package inflight

import "time"

// state is what a bound knows, behind its lock.
type state struct {
	config Config
	learnt learnt
	last   few // the latest answers

	newest     uint64        // the newest attempt that was answered
	newestSent time.Duration // when it was sent

	gained int64  // what answers have added to the bound at the start, in 1,024ths
	room   int64  // what bursts have shown to be fine, likewise
	proven [2]int // most in flight at an answer in time in the calm; of this period and the last
	period time.Duration
	bad    time.Duration // until when a loss is remembered

	calmAt, calmFrom time.Duration // the last calm, and since when there was hardly a gap in it

	drain drain
	above time.Duration // when more was last found in flight than the bound, after calls had waited for that; see heldUp
	held  []held
	quiet quiet
}

// calm reports whether all is as usual: one of the last two windows was in time,
// nothing was lost of late, nothing is overdue. In the calm the bound gives way.
func (s *state) calm(now time.Duration, overdue bool) bool {
	m, ok := s.learnt.latest()
	if !ok || s.drain.on || now < s.bad || overdue {
		return false
	}
	base := s.learnt.base
	return m <= base+max(leastSlack/2, base+base/2) // medians of 20 answers vary by a factor of two
}

// bound is how many may be in flight, in 1,024ths: what the upstream answers in a second, times what an
// answer takes without a queue and a slack (Little's law; docs/explanation/recovery.md says what it was compared
// with, VegasLimit among them), and at least what was shown to be fine. A fixed bound is what it is.
func (s *state) bound(now time.Duration, calm bool) int64 {
	c := s.config
	switch l := &s.learnt; {
	case c.Limit > 0:
		return int64(c.Limit) * scale
	case s.drain.on:
		return max(leastCut*scale, product(l.lastRate(), l.base))
	case !l.known():
		return c.within(max(s.start(now), s.room))
	case !l.settled:
		return c.within(max(s.start(now), l.flight(), s.room, int64(s.proven[0])*scale))
	case calm:
		return c.within(max(l.flight(), s.room, int64(s.proven[0])*scale, int64(s.proven[1])*scale))
	default:
		return c.within(max(l.flight(), s.room))
	}
}

// within brings a bound, in 1,024ths, between Min and Max.
func (c Config) within(n int64) int64 { return min(max(n, int64(c.Min)*scale), int64(c.Max)*scale) }

// An answer is what a bound needs to know of one.
type answer struct {
	now, took time.Duration
	inFlight  int           // it included
	waited    time.Duration // how long calls have waited for a slot without a break
	overdue   bool
}

// hears learns from an answer that did the work.
func (s *state) hears(a answer) {
	now, l := a.now, &s.learnt
	if s.drain.on {
		s.measure(a)
		return
	}
	if l.took.n == 0 {
		l.from = now
	}
	calm := s.calm(now, a.overdue)
	bound := s.bound(now, calm)
	l.took.add(a.took)
	l.heard++
	s.last.add(a.took)
	s.turnPeriod(now)
	if calm {
		if now-s.calmAt > calmGap {
			s.calmFrom = now
		}
		s.calmAt = now
	}
	if s.hasty(a) {
		s.cut(now, true)
		return
	}
	s.proves(a, calm)
	s.makeRoom(a, calm, bound)
	if !l.over(now) {
		return
	}
	l.close(now, a.inFlight-1)
	if s.drain.rest--; l.tops >= drainAfter && s.drain.rest <= 0 && s.config.Limit == 0 {
		s.cut(now, false)
	}
}

// proves notes how many were in flight at an answer in time.
func (s *state) proves(a answer, calm bool) {
	if !s.learnt.known() || calm && a.took <= s.learnt.base {
		s.proven[0] = max(s.proven[0], a.inFlight)
	}
}

// turnPeriod forgets, every provenFor, what was proven in the period before the last.
func (s *state) turnPeriod(now time.Duration) {
	if p := now / provenFor; p != s.period {
		s.period, s.proven = p, [2]int{0, s.proven[0]}
	}
}

// makeRoom lets bursts in that are answered in time, and takes back what was not.
func (s *state) makeRoom(a answer, calm bool, bound int64) {
	l := &s.learnt
	full := int64(a.inFlight+1)*scale >= bound
	if full {
		l.full++
	}
	if full && s.starting() { // besides what it grows by the clock: as quickly as calls are answered
		s.gained = min(mostRoom*scale, s.gained+scale)
	} else if full && (!l.known() || a.took <= l.base) || calm && int64(a.inFlight+1)*scale*4 >= bound*3 {
		s.room = min(mostRoom*scale, max(s.room, bound)+scale)
	}
	if l.known() && l.late(a.took) && !calm {
		s.room -= s.room / 20
	}
}

// loses notes that an attempt was given up before anything was heard that was sent
// after it: it was not only slow.
func (s *state) loses(now time.Duration) {
	s.room, s.proven, s.bad = 0, [2]int{}, now+rememberBad
}
