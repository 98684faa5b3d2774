package inflight

import "time"

// A drain distinguishes a longer queue from slower work. While no more attempts are in flight than the upstream can
// work on simultaneously, there is no queue, and the latency is the time of the work. In an overload the upstream's
// workers stay busy, so a drain costs nothing.
type drain struct {
	on    bool
	hasty bool          // it did not wait for three windows
	from  time.Duration // the instant at which it began
	took  few           // responses to attempts that were sent after the queue had gone
	last  time.Duration // the instant at which the last hasty drain began; 0 if there was none
	rest  int           // number of windows until the next drain is allowed
	count uint64
}

const (
	drainAfter   = 3 // windows in a row in which the bound was reached and responses were late
	drainRest    = 10
	drainAnswers = 10
	drainMost    = 5 * time.Second

	hastyAnswers = 5
	hastyBase    = 250 * time.Millisecond // no hasty drains if the base is longer
	hastyCalm    = 10 * time.Second       // required time of calm before
	hastyWait    = 500 * time.Millisecond // calls must have waited this long
	hastySpell   = 3 * time.Second        // waiting calls younger than this are not refused
)

// cut begins a drain. Until it ends, no more attempts are in flight than the upstream works on simultaneously, as TCP
// BBR does to measure the round trip without its own queue (ProbeRTT: Cardwell and others, 2016).
func (s *state) cut(now time.Duration, hasty bool) {
	d := &s.drain
	d.on, d.hasty, d.from, d.took = true, hasty, now, few{}
	if hasty {
		d.last = now
	}
	d.count++
	s.room = 0
	s.learnt.begin(now)
}

// measure ends a drain when enough is known about the base.
func (s *state) measure(a answer) {
	d, l := &s.drain, &s.learnt
	if a.now-a.took > d.from+l.base+l.slack() {
		d.took.add(a.took)
	}
	enough := drainAnswers
	if d.hasty {
		enough = hastyAnswers
	}
	if n := d.took.len(); n < enough && (n == 0 || a.now-d.from <= max(drainMost, l.base)) {
		return
	}
	l.rebase(a.now, d.took.median())
	d.on, d.rest = false, drainRest
}

// hasty reports whether late responses after a calm are to be examined immediately: the cause may be a queue, or
// slower work from now on.
func (s *state) hasty(a answer) bool {
	l, d := &s.learnt, &s.drain
	switch {
	case !l.settled, s.config.Limit > 0, d.rest > 0, !l.known(), l.base > hastyBase:
		return false
	case a.now-s.calmAt > calmGap, s.calmAt-s.calmFrom < hastyCalm, a.waited < hastyWait, s.last.len() < drainAnswers:
		return false
	}
	return l.late(s.last.median())
}
