// Package breaker stops calls to an upstream that is down, and finds out with
// one call at a time when it is up again.
//
// State is the machine: a value that decides and nothing else, for whoever
// keeps it. Breaker keeps one in this process, without locks on the path of a
// call, and Group keeps a Breaker per key. Most callers want one of these two.
package breaker

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Forever is the instant at which an open time without end is over.
const Forever time.Duration = math.MaxInt64

// askAgain bounds how long callers are told to wait while a probe is out. It
// will most likely be back long before its deadline.
const askAgain = time.Second

// A Ticket is the right to make one call, which may take several attempts, to be
// handed to Report with its outcome, exactly once. The zero Ticket, which comes with a refusal, may be
// reported too and counts for nothing.
type Ticket struct {
	Gen   uint32
	Probe bool          // a half-open breaker waits for this call's outcome
	Since time.Duration // of a probe: when the breaker became half-open
}

// A State is a breaker at one moment. The zero State is closed. It is small and
// comparable, so that a store can swap one for the next; instants are those of
// whoever keeps it.
type State struct {
	Phase Phase
	Why   Cause
	// Held means that the phase was forced: ForceClose until Reset, ForceOpen
	// until its time is over.
	Held bool
	// Probing means that a probe is out.
	Probing bool
	// Gen grows whenever the phase changes and with every probe. A ticket
	// counts only in the generation that it was given in.
	Gen uint32

	Since time.Duration // when the phase began
	Until time.Duration // when the open time is over, or the probe's deadline

	// Lease is until when probes may begin, of a breaker whose fleet lets this
	// process probe. It is 0 for all others.
	Lease time.Duration

	// Spell is how long it was to stay open last, hints apart; 0 if it is closed
	// or was opened by hand.
	Spell time.Duration

	Successes int           // good probes so far
	InARow    int           // failures since the last success, or more than successes: what Consecutive counts
	RowSince  time.Duration // when the first of those was reported
	Recent    Recent        // failures, the latest ones
}

// Admit decides whether a call may go through at now. If not, it reports how
// long to wait before it is worth asking again, and next equals s. A closed
// breaker admits without a look at now or c.
//
// When the open time is over the first to ask becomes the probe. The others are
// refused until it is reported, or lost at its deadline.
func (s State) Admit(now time.Duration, c Config) (next State, p Ticket, wait time.Duration, ok bool) {
	if s.Phase == Closed {
		return s, Ticket{Gen: s.Gen}, 0, true
	}
	if wait, refused := s.refuses(now); refused {
		return s, Ticket{}, wait, false
	}
	if c.Off {
		next = s.closed(now, OpenTimeOver)
		return next, Ticket{Gen: next.Gen}, 0, true
	}
	next = s.probe(now, c.WithDefaults())
	return next, Ticket{Gen: next.Gen, Probe: true, Since: next.Since}, 0, true
}

// Report counts how a call ended, as of now: the instant of the outcome,
// not of the admission. Tickets of an older generation count for nothing.
//
// Failed and unknown outcomes are failures, throttled ones only if c says so.
// Canceled ones count neither way, and a canceled probe gives its place back at
// once. Whatever else the upstream answers (rejected, throttled) counts neither
// way while closed, but proves to a probe that the upstream is up: if it did
// not, a run of such answers would keep the breaker half-open for ever.
//
// good is how many calls succeeded within c.Window in this generation; only
// the Share rule asks, and only when a failure is reported.
func (s State) Report(now time.Duration, c Config, p Ticket, o outcome.Outcome, good int64) (next State) {
	if !s.observes(p) || s.Held || c.Off {
		return s
	}
	c = c.WithDefaults()
	switch {
	case s.late(now, p):
		if good := s.proved(now, c, o); good != s {
			good.Probing = good.Probing && p.Gen != s.Gen
			return good
		}
	case s.Phase == Closed:
		return s.counted(now, c, o, good)
	case s.Phase == HalfOpen && s.Probing && p.Probe:
		return s.probed(now, c, o)
	}
	return s
}

// ForceOpen is s opened by hand for d, or until told otherwise if d is 0 or
// less. When d is over the upstream is probed as usual.
func (s State) ForceOpen(now, d time.Duration) State {
	if d <= 0 {
		d = Forever
	}
	s = s.open(now, d, Forced)
	s.Held = true
	return s
}

// ForceClose is s closed by hand, to let everything through and count nothing
// until Reset or ForceOpen.
func (s State) ForceClose(now time.Duration) State {
	s = s.closed(now, Forced)
	s.Held = true
	return s
}

// Reset is s closed, with nothing counted and nothing forced. Its generation is
// a new one: what is under way no longer counts.
func (s State) Reset(now time.Duration) State { return s.closed(now, WasReset) }

// refuses is the cheap half of Admit, for breakers that are not closed.
func (s *State) refuses(now time.Duration) (wait time.Duration, refused bool) {
	if s.Phase == HalfOpen {
		return min(s.Until-now, askAgain), s.Probing && now < s.Until
	}
	return s.Until - now, now < s.Until
}

// counted is the state after an outcome in the closed phase. good is how many succeeded in the window.
func (s State) counted(now time.Duration, c Config, o outcome.Outcome, good int64) State {
	switch c.judge(o.Class) {
	case works:
		s.succeeds(c)
	case broken:
		s.Recent = s.Recent.add(now, c.grain())
		s.inARow(now, c)
		if why := s.trips(now, c, good); why != Unset {
			return s.opened(now, c, o.Hint, why)
		}
	}
	return s
}

// succeeds has a success end the failures in a row, or take one of them off.
func (s *State) succeeds(c Config) {
	if s.InARow--; s.InARow <= 0 || !c.SuccessTakesOne {
		s.InARow, s.RowSince = 0, 0
	}
}

// inARow counts a failure for the rule Consecutive.
func (s *State) inARow(now time.Duration, c Config) {
	if c.Consecutive == 0 {
		return
	}
	if s.InARow == 0 {
		s.RowSince = now
	}
	s.InARow++
}

// trips reports which rule opens the breaker, or Unset.
func (s *State) trips(now time.Duration, c Config, good int64) Cause {
	failed := s.Recent.within(now, c.Window)
	calls := float64(failed) + float64(good)
	switch {
	case c.Failures > 0 && failed >= c.Failures:
		return TooManyFailures
	case c.Consecutive > 0 && s.InARow >= c.Consecutive && now-s.RowSince >= c.ConsecutiveFor:
		return FailuresInARow
	case c.Share > 0 && calls >= float64(c.MinCalls) && float64(failed) >= c.Share*calls:
		return FailureShare
	}
	return Unset
}

// probe is the state once a call has become the probe: no other goes until it ends, or its time is up.
func (s State) probe(now time.Duration, c Config) State {
	if s.Phase != HalfOpen {
		s.Phase, s.Why, s.Since, s.Held = HalfOpen, OpenTimeOver, now, false
	}
	s.Gen++
	s.Probing, s.Until = true, later(now, c.ProbeTimeout)
	return s
}

// observes reports whether what becomes of p can matter.
func (s *State) observes(p Ticket) bool { return p.Gen == s.Gen || s.lost(p) }

// lost reports whether another probe has taken the place of the one that p was given
// for, in the same half-open phase.
func (s *State) lost(p Ticket) bool {
	return s.Phase == HalfOpen && p.Probe && p.Gen != s.Gen && p.Since == s.Since
}

// late reports whether p was given for a probe that is past its deadline.
func (s *State) late(now time.Duration, p Ticket) bool {
	return s.lost(p) || s.Phase == HalfOpen && p.Probe && s.Probing && now >= s.Until
}

// proved counts what a late probe ended with: only that the upstream is up.
func (s State) proved(now time.Duration, c Config, o outcome.Outcome) State {
	if v := c.judge(o.Class); v != works && v != lives {
		return s
	}
	if s.Successes++; s.Successes >= c.Successes {
		return s.closed(now, ProbesSucceeded)
	}
	return s
}

// probed is the state once the probe has ended: open again, for longer than before, or a step nearer
// to closed.
func (s State) probed(now time.Duration, c Config, o outcome.Outcome) State {
	s.Probing = false
	if c.judge(o.Class) == broken {
		return s.opened(now, c, o.Hint, ProbeFailed)
	}
	return s.proved(now, c, o)
}

// opened opens it for as long as c and the hint say.
func (s State) opened(now time.Duration, c Config, h outcome.Hint, why Cause) State {
	spell := c.spell(s.Spell)
	next := s.open(now, c.openFor(h, spell), why)
	next.Spell = spell
	return next
}

// open keeps what was counted, for people to see why.
func (s State) open(now, d time.Duration, why Cause) State {
	return State{Phase: Open, Why: why, Gen: s.Gen + 1, Since: now, Until: later(now, d), InARow: s.InARow, RowSince: s.RowSince, Recent: s.Recent}
}

// closed forgets all that was counted.
func (s State) closed(now time.Duration, why Cause) State {
	return State{Phase: Closed, Why: why, Gen: s.Gen + 1, Since: now}
}

// later is now+d, or Forever if there is no such instant.
func later(now, d time.Duration) time.Duration {
	if now > Forever-d {
		return Forever
	}
	return now + d
}
