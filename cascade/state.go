package cascade

import (
	"cmp"
	"math"
	"time"
)

// A state is the health of one tier. It decides and nothing else: time comes in,
// and whoever keeps it keeps it from being used twice at once. The zero state is
// up.
type state struct {
	phase Phase
	cause Cause

	// gen grows with every cool-down and probe. What a call of an older
	// generation tells is old news, apart from hints.
	gen uint64

	inARow int           // failures since the last success; while up
	spell  time.Duration // how long it cooled last, hints apart; 0 once it is up
	since  time.Duration // when the phase, or the step of the ramp, began
	until  time.Duration // when cooling is over, or the probe's deadline
	rest   time.Duration // what was asked for while a probe was out: until when to cool after it

	step   int // of the ramp
	good   int // successes in this step
	out    int // calls of this step that are under way
	credit int // hundredths of a call that may be let through
}

// A ticket is the right to ask the tier, to be handed to hear, exactly once.
type ticket struct {
	gen   uint64
	phase Phase // in which it was given
	step  int
}

// soon bounds how long callers are told to wait while a probe is out: most likely
// it will be back long before its deadline.
const soon = time.Second

// ask decides whether a call may ask the tier. If not, it says how long to wait
// before it is worth another try. patience is how long a probe may take.
func (s *state) ask(now, patience time.Duration, c *Config) (tk ticket, wait time.Duration, ok bool) {
	s.advance(now, c)
	switch s.phase {
	case Cooling:
		if now < s.until {
			return tk, s.until - now, false
		}
		s.probe(now, patience)
	case Probing:
		if now < s.until {
			return tk, min(s.until-now, soon), false
		}
		if s.rested(now) { // the probe is lost
			return tk, s.until - now, false
		}
		s.probe(now, patience)
	case Ramping:
		if s.credit += c.Ramp[s.step].Percent; s.credit < 100 {
			return tk, 0, false
		}
		s.credit -= 100
		s.out++
	}
	return ticket{gen: s.gen, phase: s.phase, step: s.step}, 0, true
}

// hear learns what became of a call that a ticket was given for.
func (s *state) hear(now time.Duration, c *Config, tk ticket, v verdict) {
	d, why := c.Cool.pause(v)
	switch {
	case tk.gen != s.gen:
		s.hinted(now, d, why, c)
	case s.phase == Up:
		s.heardUp(now, c, v, d, why)
	case s.phase == Probing:
		s.heardProbe(now, c, v, d, why)
	case s.phase == Ramping:
		s.heardRamp(now, c, tk, v, d, why)
	}
}

func (s *state) heardUp(now time.Duration, c *Config, v verdict, d time.Duration, why Cause) {
	switch v.kind {
	case works:
		s.inARow = 0
	case shut:
		s.shut(now, v, c)
	case broken:
		if s.inARow++; d > 0 || s.inARow >= c.Failures {
			s.cool(now, d, cmp.Or(why, FailuresInARow), c)
		}
	}
}

func (s *state) heardProbe(now time.Duration, c *Config, v verdict, d time.Duration, why Cause) {
	switch v.kind {
	case works, lives:
		if !s.rested(now) {
			s.ramp(now, c)
		}
	case shut:
		s.shut(now, v, c)
	case broken:
		s.cool(now, d, cmp.Or(why, ProbeFailed), c)
	default: // its place is free again
		if !s.rested(now) {
			s.phase, s.until = Cooling, now
		}
	}
}

func (s *state) heardRamp(now time.Duration, c *Config, tk ticket, v verdict, d time.Duration, why Cause) {
	same := tk.phase == Ramping && tk.step == s.step
	if same {
		s.out--
	}
	switch v.kind {
	case works:
		if same {
			s.good++
		}
		s.advance(now, c)
	case shut:
		s.shut(now, v, c)
	case broken:
		s.cool(now, d, cmp.Or(why, RampFailed), c)
	case unused:
		if same {
			s.credit = min(s.credit+100, 100)
		}
	}
}

// hinted obeys what a call of an older generation was told. It does not end a
// probe, which might then meet another one.
func (s *state) hinted(now, d time.Duration, why Cause, c *Config) {
	at := later(now, d)
	switch {
	case d == 0:
	case s.phase == Probing:
		s.rest = max(s.rest, at)
	case s.phase != Cooling:
		s.cool(now, d, why, c)
	case at > s.until:
		s.until, s.cause = at, why
	}
}

// rested goes on cooling after a probe, if that was asked for while it was out.
func (s *state) rested(now time.Duration) bool {
	if s.rest <= now {
		return false
	}
	s.leave(now, s.rest-now, Hinted)
	return true
}

// cool begins a cool-down of at least so long. Its own length doubles until the
// tier is up again.
func (s *state) cool(now, atLeast time.Duration, why Cause, c *Config) {
	if s.spell == 0 {
		s.spell = c.Cool.First
	} else {
		s.spell = min(s.spell, c.Cool.Most/2) * 2
		s.spell = max(s.spell, c.Cool.First)
	}
	s.leave(now, max(s.spell, atLeast), why)
}

// shut leaves the tier alone until its own breaker will let a probe through. That
// breaker can be closed by hand, and asking it costs nothing: hence the bound.
func (s *state) shut(now time.Duration, v verdict, c *Config) {
	d := c.Cool.First
	if v.after > 0 {
		d = min(v.after, c.Cool.Most)
	}
	s.leave(now, d, CircuitOpen)
}

func (s *state) leave(now, d time.Duration, why Cause) {
	s.gen++
	s.phase, s.cause, s.since, s.inARow = Cooling, why, now, 0
	s.until, s.rest = max(later(now, d), s.rest), 0
}

func (s *state) probe(now, patience time.Duration) {
	if s.phase != Probing {
		s.phase, s.cause, s.since = Probing, CooledDown, now
	}
	s.gen++
	s.until = later(now, patience)
}

// ramp begins the way back with the first call of the first step.
func (s *state) ramp(now time.Duration, c *Config) {
	s.phase, s.cause, s.since = Ramping, ProbeSucceeded, now
	s.step, s.good, s.out, s.credit = 0, 0, 0, 100
	if len(c.Ramp) > 0 {
		s.credit = 100 - c.Ramp[0].Percent
	}
	s.advance(now, c)
}

// advance takes the steps that are done. After a time without calls these may be
// several.
func (s *state) advance(now time.Duration, c *Config) {
	for s.phase == Ramping {
		if s.step >= len(c.Ramp) {
			s.up(now, StepDone)
			return
		}
		step := &c.Ramp[s.step]
		switch end := later(s.since, step.For); {
		case s.good >= step.Successes:
			s.since = now
		case now >= end && (s.good > 0 || s.out <= 0 || now >= later(end, c.Probe)):
			s.since = end
		default:
			return
		}
		s.step, s.good, s.out, s.cause = s.step+1, 0, 0, StepDone
	}
}

// up keeps the generation: a call let through on the way here still counts.
func (s *state) up(now time.Duration, why Cause) {
	s.phase, s.cause, s.since, s.until, s.rest, s.inARow, s.spell = Up, why, now, 0, 0, 0, 0
}

// share is the percentage of calls that are let through.
func (s *state) share(c *Config) int {
	switch s.phase {
	case Up:
		return 100
	case Ramping:
		return c.Ramp[s.step].Percent
	}
	return 0
}

// later is now+d, or the last instant if there is none so late.
func later(now, d time.Duration) time.Duration {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}
