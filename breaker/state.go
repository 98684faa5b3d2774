// Package breaker stops calls to an upstream that is down, and finds out with one call at a time when it is up again.
//
// State is the state machine: a plain value without storage. Breaker holds one in this process, without locks on the path of a
// call, and Group has a Breaker per key. Most callers need a Breaker or a Group.
package breaker

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Forever is the end of an unlimited open time.
const Forever time.Duration = math.MaxInt64

// askAgain is the maximum wait returned while a probe is in progress. The probe usually ends long before its deadline.
const askAgain = time.Second

// A Ticket is the right to make one call, possibly with several attempts. Pass it to Report with the call's outcome, exactly
// once. The zero Ticket, which a refusal returns, may be reported and has no effect.
type Ticket struct {
	Gen   uint32
	Probe bool          // a half-open breaker waits for this call's outcome
	Since time.Duration // of a probe: when the breaker became half-open
}

// A State is a breaker at one moment. The zero State is closed. It is small and comparable, so that a store can replace one by
// the next. Instants come from the storage's clock.
type State struct {
	Phase Phase
	Why   Cause
	// Held means that the phase was forced: by ForceClose until Reset, by ForceOpen until its time is over.
	Held bool
	// Probing means that a probe is in progress.
	Probing bool
	// Gen grows with every change of phase and every probe. A ticket only counts in its own generation.
	Gen uint32

	Since time.Duration // when the phase began
	Until time.Duration // end of the open time, or the probe's deadline

	// Lease is the end of the time in which probes may begin, if a fleet lets this process probe. Otherwise it is 0.
	Lease time.Duration

	// Spell is the last open time without hints; 0 if it is closed or was opened by an operator.
	Spell time.Duration

	Successes int           // successful probes so far
	InARow    int           // failures since the last success, or more than successes: the value for Consecutive
	RowSince  time.Duration // the first of those failures
	Recent    Recent        // the latest failures
}

// Admit decides whether a call may proceed at now. If not, it returns the time to wait before the next try, and next equals s. A
// closed breaker admits without regard to now or c.
//
// When the open time is over, the first caller becomes the probe. Other callers are refused until the probe is reported, or lost
// at its deadline.
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

// Report records the outcome of a call at now, which is the time of the outcome and not of the admission. Tickets of an older
// generation have no effect.
//
// Failed and unknown outcomes are failures. Throttled ones are failures only if c requests it. Canceled ones count neither way,
// and a canceled probe makes room for another immediately. Other responses (rejected, throttled) count neither way while the
// breaker is closed. For a probe they prove that the upstream is up: otherwise a series of such responses would keep the breaker
// half-open forever.
//
// good is the number of successful calls within c.Window in this generation. Only the Share rule uses it, and only when a failure
// is reported.
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

// ForceOpen returns s opened by an operator for d, or indefinitely if d is 0 or less. After d the upstream is probed as usual.
func (s State) ForceOpen(now, d time.Duration) State {
	if d <= 0 {
		d = Forever
	}
	s = s.open(now, d, Forced)
	s.Held = true
	return s
}

// ForceClose returns s closed by an operator: it admits every call and counts nothing until Reset or ForceOpen.
func (s State) ForceClose(now time.Duration) State {
	s = s.closed(now, Forced)
	s.Held = true
	return s
}

// Reset returns s closed, without counts and not forced. It has a new generation, so calls in progress no longer count.
func (s State) Reset(now time.Duration) State { return s.closed(now, WasReset) }

// refuses is the cheap half of Admit, for breakers that are not closed.
func (s *State) refuses(now time.Duration) (wait time.Duration, refused bool) {
	if s.Phase == HalfOpen {
		return min(s.Until-now, askAgain), s.Probing && now < s.Until
	}
	return s.Until - now, now < s.Until
}

// counted returns the state after an outcome in the closed phase. good is the number of successes in the window.
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

// succeeds resets the consecutive failures, or subtracts one of them.
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

// probe returns the state after a call has become the probe. No other call is admitted until the probe ends, or its time is over.
func (s State) probe(now time.Duration, c Config) State {
	if s.Phase != HalfOpen {
		s.Phase, s.Why, s.Since, s.Held = HalfOpen, OpenTimeOver, now, false
	}
	s.Gen++
	s.Probing, s.Until = true, later(now, c.ProbeTimeout)
	return s
}

// observes reports whether the outcome of p can matter.
func (s *State) observes(p Ticket) bool { return p.Gen == s.Gen || s.lost(p) }

// lost reports whether another probe has replaced the one that p was given for, in the same half-open phase.
func (s *State) lost(p Ticket) bool {
	return s.Phase == HalfOpen && p.Probe && p.Gen != s.Gen && p.Since == s.Since
}

// late reports whether p was given for a probe whose deadline has passed.
func (s *State) late(now time.Duration, p Ticket) bool {
	return s.lost(p) || s.Phase == HalfOpen && p.Probe && s.Probing && now >= s.Until
}

// proved counts the outcome of a late probe, which can only prove that the upstream is up.
func (s State) proved(now time.Duration, c Config, o outcome.Outcome) State {
	if v := c.judge(o.Class); v != works && v != lives {
		return s
	}
	if s.Successes++; s.Successes >= c.Successes {
		return s.closed(now, ProbesSucceeded)
	}
	return s
}

// probed returns the state after the probe: open again, for longer than before, or a step closer to closed.
func (s State) probed(now time.Duration, c Config, o outcome.Outcome) State {
	s.Probing = false
	if c.judge(o.Class) == broken {
		return s.opened(now, c, o.Hint, ProbeFailed)
	}
	return s.proved(now, c, o)
}

// opened returns the state opened for the time that c and the hint determine.
func (s State) opened(now time.Duration, c Config, h outcome.Hint, why Cause) State {
	spell := c.spell(s.Spell)
	next := s.open(now, c.openFor(h, spell), why)
	next.Spell = spell
	return next
}

// open keeps the failures, to show why it opened.
func (s State) open(now, d time.Duration, why Cause) State {
	return State{Phase: Open, Why: why, Gen: s.Gen + 1, Since: now, Until: later(now, d), InARow: s.InARow, RowSince: s.RowSince, Recent: s.Recent}
}

// closed clears all counts.
func (s State) closed(now time.Duration, why Cause) State {
	return State{Phase: Closed, Why: why, Gen: s.Gen + 1, Since: now}
}

// later returns now+d, or Forever if that overflows.
func later(now, d time.Duration) time.Duration {
	if now > Forever-d {
		return Forever
	}
	return now + d
}
