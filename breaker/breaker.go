package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A Breaker is a State kept in this process. Admit and Report take no lock and
// allocate nothing while all goes well: a closed Admit is one atomic load, and
// the report of a success writes only what a configured rule needs.
//
// The zero Breaker has the default Config and tells nobody. A Breaker is safe
// for concurrent use and must not be copied.
type Breaker struct {
	key      string
	first    *Config // the config to begin with; nil means the default
	onChange func(Change)

	cur atomic.Pointer[box] // nil until first needed
	tie atomic.Pointer[tie] // nil unless it is one of a fleet

	evidence evidence

	mu      sync.Mutex // held for changes of phase, never while calling out
	untold  []Change
	telling bool
}

// A box is a State that no one changes any more, with what belongs to its
// generation.
type box struct {
	State
	cfg  *Config         // in force
	good *counter.Window // successes while closed; nil unless the Share rule needs them
}

// goodBuckets divides Config.Window for counting successes.
const goodBuckets = 10

// New returns a closed breaker. The key names it in changes. onChange, unless
// nil, is called with every change of phase, one at a time and in order, outside all
// locks: it may call the Breaker. It runs on the goroutine of a caller, so it
// should return soon.
func New(key string, c Config, onChange func(Change)) *Breaker {
	return &Breaker{key: key, first: new(c.WithDefaults()), onChange: onChange}
}

// Admit decides whether a call may go through at now. Every ticket must be
// reported, whatever becomes of the call; one that is never used is reported
// as canceled. On refusal it says how long to wait before asking again.
func (b *Breaker) Admit(now time.Duration) (p Ticket, wait time.Duration, ok bool) {
	if s := b.cur.Load(); s != nil && s.Phase == Closed {
		return Ticket{Gen: s.Gen}, 0, true
	}
	return b.admit(now)
}

// admit is Allow where the breaker may not be closed: it refuses, or makes the call the one probe.
// Those that are too late for that look again.
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

// Report counts how the call ended that p was given for. See State.Report.
func (b *Breaker) Report(now time.Duration, p Ticket, o outcome.Outcome) {
	switch {
	case o.Class == outcome.OK:
		b.Good(now, p)
	case o.Class != outcome.Canceled || p.Probe: // nobody waits for another, and it counts neither way
		b.report(now, p, o)
	}
}

// Good is Report of a call that succeeded, as nearly every one does.
func (b *Breaker) Good(now time.Duration, p Ticket) { b.GoodIn(-1, now, p) }

// GoodIn is Good for who has picked a cell of counters already (counter.Pick); below 0 is none.
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

// Begin counts a call as a success whose answer has begun, until End reports how that ended: of answers that take
// minutes, those that fail would be the only ones to have ended. It counts for the rule Share alone. The cell is as of GoodIn; Begin returns the one for End.
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

// End reports how a call ended, as of now, that Begin has counted as of began, in the cell that Begin returned. The call
// is of a caller that was authenticated, or of "".
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

// report has the state take note of an outcome, as often as another goroutine was first. What a
// call ends with that was let go before the last change of phase is dropped.
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

// succeeded is summed for failures only. It may count successes that are a little
// too old, while failures may be forgotten a little early: the share that the
// breaker sees is at most the true one.
func (s *box) succeeded(now time.Duration, class outcome.Class) int64 {
	if s.good == nil || s.cfg.judge(class) != broken {
		return 0
	}
	return s.good.Covering(now, s.cfg.Window)
}

// Waits reports whether the probe that p was given for is still waited for.
func (b *Breaker) Waits(now time.Duration, p Ticket) bool {
	s := b.load()
	return s.Phase == HalfOpen && s.Probing && s.Gen == p.Gen && now < s.Until
}

// ForceOpen opens b for d, or until told otherwise if d is 0 or less. When d is
// over the upstream is probed as usual.
func (b *Breaker) ForceOpen(now, d time.Duration) {
	b.force(now, func(s State) State { return s.ForceOpen(now, d) })
}

// ForceClose closes b and keeps it closed, whatever fails, until Reset or
// ForceOpen.
func (b *Breaker) ForceClose(now time.Duration) {
	b.force(now, func(s State) State { return s.ForceClose(now) })
}

// Reset closes b, forgets what was counted and undoes what was forced.
func (b *Breaker) Reset(now time.Duration) {
	b.force(now, func(s State) State { return s.Reset(now) })
}

// force puts in force what to makes of the state, whatever that is.
func (b *Breaker) force(now time.Duration, to func(State) State) {
	for {
		if old := b.load(); b.swap(now, old, to(old.State)) {
			return
		}
	}
}

// load is the state in force. The zero Breaker makes its first here, closed, with the defaults.
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

// counts reports whether a rule needs to know of successes.
func (c *Config) counts() bool { return c.Share > 0 && !c.Off }

// counter is what counts successes; nil if no rule asks for them, so that they cost nothing.
func (c *Config) counter() *counter.Window {
	if !c.counts() {
		return nil
	}
	return counter.NewWindow(c.Window, goodBuckets)
}

// swap puts next in place of old unless another goroutine was first. Changes of
// phase are made and queued under the lock, so that they are told in order; all
// else goes without.
func (b *Breaker) swap(now time.Duration, old *box, next State) bool {
	if next.Phase == old.Phase && (next.Gen == old.Gen || next.Probing) {
		return b.cur.CompareAndSwap(old, &box{next, old.cfg, old.good})
	}
	n := &box{State: next, cfg: old.cfg}
	if next.Phase == Closed {
		n.good = n.cfg.counter() // a new generation is not judged by the old one's calls
	}
	if !b.change(now, old, n) {
		return false
	}
	b.tell()
	b.moved()
	return true
}
