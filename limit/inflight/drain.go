package inflight

import "time"

// A drain tells a longer queue from slower work: while no more is in flight than the
// upstream can work on at once, there is no queue, and answers take what the work
// takes. In an overload its workers stay busy, so it costs nothing.
type drain struct {
	on    bool
	hasty bool          // it did not wait for three windows
	from  time.Duration // it began
	took  few           // answers to what was sent when the queue had gone
	last  time.Duration // the last hasty one began; 0 if there was none
	rest  int           // windows until there may be another
	count uint64
}

const (
	drainAfter   = 3 // windows in a row in which the bound was reached and answers were late
	drainRest    = 10
	drainAnswers = 10
	drainMost    = 5 * time.Second

	hastyAnswers = 5
	hastyBase    = 250 * time.Millisecond // no hasty drains where the base is longer
	hastyCalm    = 10 * time.Second       // so long it must have been calm
	hastyWait    = 500 * time.Millisecond // so long calls must have waited
	hastySpell   = 3 * time.Second        // no waiting call is refused meanwhile that came so lately
)

// cut begins a drain: until it ends no more is in flight than the upstream works on at once, as TCP BBR
// does to see the round trip without its own queue (ProbeRTT: Cardwell and others, 2016).
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

// measure ends a drain once enough is known of the base.
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

// hasty reports whether answers that come late, out of the calm, are to be looked into
// at once: it may be a queue, or slower work from now on.
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
