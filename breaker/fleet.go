package breaker

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Fleet represents the breakers of other processes for the same upstream. Package shared implements it. Leads and Wanted are
// called when a call is refused, Failed when a call fails: they must return quickly and must not call the breaker. All methods
// must be safe for concurrent use. If a closed breaker admits a call and the call succeeds, no method is called.
type Fleet interface {
	// Leads reports whether the fleet decides when an open breaker is probed, and by which process. Otherwise each breaker
	// decides for itself.
	Leads(now time.Duration) bool

	// Failed is called when a closed breaker has counted a failure.
	Failed(key string, now time.Duration, h outcome.Hint)

	// Wanted is called, at most ten times a second and key, when a call was refused that would have been the probe without the
	// fleet.
	Wanted(key string, now time.Duration)

	// Moved is called when a breaker has changed its phase, by itself or by an operator.
	Moved(key string)
}

// askSoon is the wait returned to a call that would have been the probe. By then it is known whether this process may probe.
const askSoon = 100 * time.Millisecond

// tie connects a breaker to its fleet.
type tie struct {
	Fleet
	wanted atomic.Int64 // the latest call of Wanted
}

// Join makes b a permanent member of a fleet. Call it before b is used.
func (b *Breaker) Join(f Fleet) { b.tie.Store(&tie{Fleet: f}) }

// Join makes all breakers of g, including later ones, permanent members of a fleet. Other stays separate, because it stands for
// different keys in every process.
func (g *Group) Join(f Fleet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fleet = f
	for _, v := range g.live.Range {
		v.(*member).Join(f)
	}
}

// All yields only b. It corresponds to Group.All.
func (b *Breaker) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) { yield(b.key, b) }
}

// State returns the current state of b.
func (b *Breaker) State() State { return b.load().State }

// Config returns the current config, with all defaults.
func (b *Breaker) Config() Config { return *b.load().cfg }

// Adopt replaces the state by s, which the fleet has agreed on, as the next generation. It returns that generation. If b's
// generation is not from, or if b is off and s is neither closed nor forced, it does nothing and returns false.
//
// It reports a change of phase as usual, but not a restart of the same phase.
func (b *Breaker) Adopt(now time.Duration, from uint32, s State) (gen uint32, ok bool) {
	for {
		old := b.load()
		if old.Gen != from || old.cfg.Off && s.Phase != Closed && !s.Held {
			return old.Gen, false
		}
		if next := old.adopted(s); b.adopt(now, old, next) {
			return next.Gen, true
		}
	}
}

// adopted returns the box for a state of the fleet. It has a new generation, so that calls of the old one do not count.
func (s *box) adopted(to State) *box {
	next := &box{State: to, cfg: s.cfg}
	next.Gen = s.Gen + 1
	if to.Phase == Closed {
		next.good = s.cfg.counter()
	} else { // keep the failures, to show why it opened
		next.InARow, next.RowSince, next.Recent = s.InARow, s.RowSince, s.Recent
	}
	return next
}

// adopt replaces old by next unless another goroutine was first, and reports it if it is a change.
func (b *Breaker) adopt(now time.Duration, old, next *box) bool {
	if next.Phase == old.Phase && next.Held == old.Held {
		return b.cur.CompareAndSwap(old, next)
	}
	if !b.change(now, old, next) {
		return false
	}
	b.tell()
	return true
}

// Trip opens b if it is closed, as if a rule of its Config had opened it, for the time that h requests. The cause is the failures
// of the whole fleet, or the hint itself.
func (b *Breaker) Trip(now time.Duration, h outcome.Hint, why Cause) {
	for {
		old := b.load()
		if old.Phase != Closed || old.Held || old.cfg.Off {
			return
		}
		if b.swap(now, old, old.opened(now, *old.cfg, h, why)) {
			return
		}
	}
}

// led reports whether a call that might be a probe must wait until the fleet lets this process probe. It notifies the fleet.
func (b *Breaker) led(now time.Duration, s *box) bool {
	t := b.tie.Load()
	if t == nil || s.cfg.Off || s.leased(now) || !t.Leads(now) {
		return false
	}
	last := t.wanted.Load()
	if (last == 0 || now-time.Duration(last) >= askSoon) && t.wanted.CompareAndSwap(last, max(1, int64(now))) {
		t.Wanted(b.key, now)
	}
	return true
}

// leased reports whether the fleet lets this process begin a probe.
func (s *State) leased(now time.Duration) bool { return s.Phase == HalfOpen && now < s.Lease }

// moved notifies the fleet of a change that it did not make.
func (b *Breaker) moved() {
	if t := b.tie.Load(); t != nil {
		t.Moved(b.key)
	}
}

// failed notifies the fleet of an outcome if it is a failure of a closed breaker.
func (b *Breaker) failed(now time.Duration, s *box, o *outcome.Outcome) {
	if t := b.tie.Load(); t != nil && s.Phase == Closed && s.cfg.judge(o.Class) == broken {
		t.Failed(b.key, now, o.Hint)
	}
}
