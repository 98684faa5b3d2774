package inflight

import "time"

// state contains the measurements of a bound, protected by its lock.
type state struct {
	config Config
	learnt learnt
	last   few // the latest latencies

	newest     uint64        // the newest answered attempt
	newestSent time.Duration // when it was sent

	gained int64  // growth of the bound by responses at the start, in 1,024ths
	room   int64  // the bound that bursts have shown to be safe, also in 1,024ths
	proven [2]int // most attempts in flight at a timely response in a calm; of this period and the last
	period time.Duration
	bad    time.Duration // until when a loss is remembered

	calmAt, calmFrom time.Duration // the last calm, and since when it had hardly an interruption

	drain drain
	above time.Duration // when more attempts than the bound were last found in flight, after calls had waited for that; see heldUp
	held  []held
	quiet quiet
}

// calm reports whether everything is normal: one of the last two windows was in time, no attempt was lost recently,
// and none is overdue. During a calm the bound may be exceeded a little.
func (s *state) calm(now time.Duration, overdue bool) bool {
	m, ok := s.learnt.latest()
	if !ok || s.drain.on || now < s.bad || overdue {
		return false
	}
	base := s.learnt.base
	return m <= base+max(leastSlack/2, base+base/2) // medians of 20 responses vary by a factor of two
}

// bound returns how many attempts may be in flight, in 1,024ths: the responses per second, times the latency without
// a queue and a slack (Little's law), and at least the number that was shown to be safe. docs/explanation/recovery.md
// compares it with other algorithms, such as VegasLimit. A fixed bound is returned as it is.
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

// within limits a bound, in 1,024ths, to Min and Max.
func (c Config) within(n int64) int64 { return min(max(n, int64(c.Min)*scale), int64(c.Max)*scale) }

// An answer contains the properties of a response that a bound needs.
type answer struct {
	now, took time.Duration
	inFlight  int           // including this attempt
	waited    time.Duration // how long calls have waited for a slot without a break
	overdue   bool
}

// hears learns from a response for which the upstream did the work.
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
	if a.took <= l.base {
		l.fast = l.heard
	}
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

// proves records how many attempts were in flight at a timely response.
func (s *state) proves(a answer, calm bool) {
	if !s.learnt.known() || calm && a.took <= s.learnt.base {
		s.proven[0] = max(s.proven[0], a.inFlight)
	}
}

// turnPeriod drops, every provenFor, the proven number of the period before the last.
func (s *state) turnPeriod(now time.Duration) {
	if p := now / provenFor; p != s.period {
		s.period, s.proven = p, [2]int{0, s.proven[0]}
	}
}

// makeRoom raises the bound for bursts that get timely responses, and lowers it again for late ones.
func (s *state) makeRoom(a answer, calm bool, bound int64) {
	l := &s.learnt
	full := int64(a.inFlight+1)*scale >= bound
	if full {
		l.full++
	}
	if full && s.starting() { // in addition to the growth with time: as fast as responses arrive
		s.gained = min(mostRoom*scale, s.gained+scale)
	} else if full && (!l.known() || a.took <= l.base) || calm && int64(a.inFlight+1)*scale*4 >= bound*3 {
		s.room = min(mostRoom*scale, max(s.room, bound)+scale)
	}
	if l.known() && l.late(a.took) && !calm {
		s.room -= s.room / 20
	}
}

// loses records that an attempt was given up before any later attempt got a response: it was not only slow.
func (s *state) loses(now time.Duration) {
	s.room, s.proven, s.bad = 0, [2]int{}, now+rememberBad
}
