package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A Breaker holds a State in this process. While calls succeed, Admit and Report take no lock and do not allocate. Admit of a
// closed breaker is one atomic load. The report of a success writes only what a configured rule needs.
//
// The zero Breaker has the default Config and no callback. A Breaker is safe for concurrent use and must not be copied.
type Breaker struct {
	key      string
	first    *Config // the initial config; nil means the default
	onChange func(Change)

	cur atomic.Pointer[box] // nil until first needed
	tie atomic.Pointer[tie] // nil unless it belongs to a fleet

	evidence evidence

	mu      sync.Mutex // held during changes of phase, never during callbacks
	untold  []Change
	telling bool
}

// A box is an immutable State, with the data of its generation.
type box struct {
	State
	cfg  *Config         // in force
	good *counter.Window // successes while closed; nil unless the Share rule needs them
}

// goodBuckets is the number of buckets of Config.Window for counting successes.
const goodBuckets = 10

// New returns a closed breaker. Changes contain the key. onChange, if not nil, is called for every change of phase, one at a time
// and in order, without a lock: it may call the Breaker. It runs on the goroutine of a caller, so it should return quickly.
func New(key string, c Config, onChange func(Change)) *Breaker {
	return &Breaker{key: key, first: new(c.WithDefaults()), onChange: onChange}
}

// Admit decides whether a call may proceed at now. Every ticket must be reported, also that of an unused call, which is reported
// as canceled. If Admit refuses, it returns the time to wait before the next try.
func (b *Breaker) Admit(now time.Duration) (p Ticket, wait time.Duration, ok bool) {
	if s := b.cur.Load(); s != nil && s.Phase == Closed {
		return Ticket{Gen: s.Gen}, 0, true
	}
	return b.admit(now)
}

// admit is Admit for a breaker that may not be closed: it refuses, or makes the call the only probe. Callers that lose the race
// for the probe check again.
func (b *Breaker) admit(now time.Duration) (Ticket, time.Duration, bool) {
	for {
		old := b.load()
		if wait, refused := old.refuses(now); refused && old.Phase != Closed {
			return Ticket{}, wait, false
		}
		if old.Phase != Closed && b.led(now, old) {
			return Ticket{}, askSoon, false
		}
		next, p, wait, ok := old.Admit(now, *old.cfg)
		if old.Phase == Closed || b.swap(now, old, next) {
			return p, wait, ok
		}
	}
}

// Report records the outcome of the call that got p. See State.Report.
func (b *Breaker) Report(now time.Duration, p Ticket, o outcome.Outcome) {
	switch {
	case o.Class == outcome.OK:
		b.Good(now, p)
	case o.Class != outcome.Canceled || p.Probe: // a canceled call counts neither way, and no caller waits for one that is not a probe
		b.report(now, p, o)
	}
}

// Good is Report for a successful call, the usual case.
func (b *Breaker) Good(now time.Duration, p Ticket) { b.GoodIn(-1, now, p) }

// GoodIn is Good for a caller that has already picked a cell of counters (counter.Pick). A negative cell means none.
func (b *Breaker) GoodIn(cell int, now time.Duration, p Ticket) {
	if s := b.cur.Load(); s != nil {
		if s.good != nil && s.Gen == p.Gen {
			if cell < 0 {
				cell = counter.Pick()
			}
			s.good.AddIn(cell, now, 1)
		}
		if s.Phase == Closed && s.InARow == 0 {
			return // no rule needs it
		}
	}
	b.report(now, p, outcome.Outcome{Class: outcome.OK})
}

// Begin counts a call as a success when its response begins, until End reports its result. Otherwise, of responses that take
// minutes, only the failed ones would have ended. It only counts for the rule Share. The cell is as for GoodIn. Begin returns the
// cell for End.
func (b *Breaker) Begin(cell int, now time.Duration, p Ticket) int {
	s := b.cur.Load()
	if s == nil || s.good == nil || s.Gen != p.Gen {
		return cell
	}
	if cell < 0 {
		cell = counter.Pick()
	}
	s.good.AddIn(cell, now, 1)
	return cell
}

// End reports the result, at now, of a call that Begin counted at began, in the cell that Begin returned. caller is the
// authenticated caller, or "".
func (b *Breaker) End(cell int, now, began time.Duration, p Ticket, o outcome.Outcome, caller string) {
	s := b.load()
	if o.Class == outcome.OK {
		if s.Phase != Closed || s.InARow > 0 {
			b.report(now, p, o)
		}
		return
	}
	if s.good != nil && s.Gen == p.Gen && cell >= 0 {
		s.good.AddIn(cell, began, -1)
	}
	b.ReportOf(now, p, o, caller)
}

// report applies an outcome to the state, and repeats that after a conflict. It ignores calls that were admitted before the last
// change of phase.
func (b *Breaker) report(now time.Duration, p Ticket, o outcome.Outcome) {
	for {
		old := b.load()
		if !old.observes(p) {
			return
		}
		next := old.Report(now, *old.cfg, p, o, old.succeeded(now, o.Class))
		if next == old.State {
			return
		}
		if b.swap(now, old, next) {
			b.failed(now, old, &o)
			return
		}
	}
}

// succeeded counts successes, only for failures. It may include successes that are slightly too old, while failures may expire
// slightly early. So the share that the breaker computes is at most the true one.
func (s *box) succeeded(now time.Duration, class outcome.Class) int64 {
	if s.good == nil || s.cfg.judge(class) != broken {
		return 0
	}
	return s.good.Covering(now, s.cfg.Window)
}

// Waits reports whether the breaker still waits for the probe that p was given for.
func (b *Breaker) Waits(now time.Duration, p Ticket) bool {
	s := b.load()
	return s.Phase == HalfOpen && s.Probing && s.Gen == p.Gen && now < s.Until
}

// ForceOpen opens b for d, or indefinitely if d is 0 or less. After d the upstream is probed as usual.
func (b *Breaker) ForceOpen(now, d time.Duration) {
	b.force(now, func(s State) State { return s.ForceOpen(now, d) })
}

// ForceClose closes b and keeps it closed, even if calls fail, until Reset or ForceOpen.
func (b *Breaker) ForceClose(now time.Duration) {
	b.force(now, func(s State) State { return s.ForceClose(now) })
}

// Reset closes b, clears its counts and ends a forced phase.
func (b *Breaker) Reset(now time.Duration) {
	b.force(now, func(s State) State { return s.Reset(now) })
}

// force replaces the state by to of the state.
func (b *Breaker) force(now time.Duration, to func(State) State) {
	for {
		if old := b.load(); b.swap(now, old, to(old.State)) {
			return
		}
	}
}

// load returns the current state. It creates the first state of a zero Breaker: closed, with the defaults.
func (b *Breaker) load() *box {
	for {
		if s := b.cur.Load(); s != nil {
			return s
		}
		c := b.first
		if c == nil {
			c = &byDefault
		}
		b.cur.CompareAndSwap(nil, &box{cfg: c, good: c.counter()})
	}
}

var byDefault = Config{}.WithDefaults()

func (c *Config) counts() bool { return c.Share > 0 && !c.Off }

// counter returns a counter of successes, nil if no rule needs it, so that successes cost nothing.
func (c *Config) counter() *counter.Window {
	if !c.counts() {
		return nil
	}
	return counter.NewWindow(c.Window, goodBuckets)
}

// swap replaces old by next unless another goroutine was first. Changes of phase are made and queued under the lock, so that they
// are reported in order. Other changes need no lock.
func (b *Breaker) swap(now time.Duration, old *box, next State) bool {
	if next.Phase == old.Phase && (next.Gen == old.Gen || next.Probing) {
		return b.cur.CompareAndSwap(old, &box{next, old.cfg, old.good})
	}
	n := &box{State: next, cfg: old.cfg}
	if next.Phase == Closed {
		n.good = n.cfg.counter() // a new generation is not judged by the calls of the old one
	}
	if !b.change(now, old, n) {
		return false
	}
	b.tell()
	b.moved()
	return true
}
