package breaker

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Fleet is the breakers that other processes have for the same upstream, as one
// of them sees it; package shared makes it. Leads is asked and Wanted told on the
// path of calls that are not let through, Failed on that of failures: they must
// return at once, may not call the breaker, and are for concurrent use. A call that
// a closed breaker admits, and its success, ask nobody.
type Fleet interface {
	// Leads reports whether the fleet says when an open breaker is probed and by
	// whom. Otherwise each breaker decides that by itself.
	Leads(now time.Duration) bool

	// Failed tells that a closed breaker has counted a failure.
	Failed(key string, now time.Duration, h outcome.Hint)

	// Wanted tells, not more than ten times a second and key, that a call was
	// refused which would have been the probe but for the fleet.
	Wanted(key string, now time.Duration)

	// Moved tells that a breaker has changed its phase by itself or by hand.
	Moved(key string)
}

// askSoon is how long a call is told to wait that would have been the probe: by
// then it is known whether this process may probe.
const askSoon = 100 * time.Millisecond

// tie is what binds a breaker to its fleet.
type tie struct {
	Fleet
	wanted atomic.Int64 // the instant of the latest call that was told of
}

// Join makes b one of a fleet, for good. It is to be called before b is used.
func (b *Breaker) Join(f Fleet) { b.tie.Store(&tie{Fleet: f}) }

// Join makes all breakers of g, those to come included, members of a fleet, for
// good. Other stays apart: it stands for different keys in every process.
func (g *Group) Join(f Fleet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fleet = f
	for _, v := range g.live.Range {
		v.(*member).Join(f)
	}
}

// All lists b alone, as Group's lists all of a group.
func (b *Breaker) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) { yield(b.key, b) }
}

// State is the state of b, which goes on changing.
func (b *Breaker) State() State { return b.load().State }

// Config is the config in force, its defaults filled in.
func (b *Breaker) Config() Config { return *b.load().cfg }

// Adopt puts s, which the fleet has agreed on, in force as the next generation and
// returns that. It reports false and does nothing if b is in another generation
// than from, or is turned off and s was not forced.
//
// A change of phase is told as ever; that the same phase begins anew is not.
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

// adopted is the box after it took over a state of the fleet: a new generation, so that what calls
// of the old one end with is not counted.
func (s *box) adopted(to State) *box {
	next := &box{State: to, cfg: s.cfg}
	next.Gen = s.Gen + 1
	if to.Phase == Closed {
		next.good = s.cfg.counter()
	} else { // for people to see why
		next.InARow, next.RowSince, next.Recent = s.InARow, s.RowSince, s.Recent
	}
	return next
}

// adopt puts next in the place of old unless another goroutine was first, and tells of it if it is a
// change.
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

// Trip opens b, if it is closed, as though a rule of its Config had opened it, for as
// long as h asks: because of the failures of the whole fleet, or of the hint itself.
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

// led reports whether a call that might be a probe has to wait until the fleet
// lets this process probe, and tells the fleet of it.
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

// moved tells the fleet of a change that it did not make.
func (b *Breaker) moved() {
	if t := b.tie.Load(); t != nil {
		t.Moved(b.key)
	}
}

// failed tells the fleet of an outcome, if that was a failure of a closed breaker.
func (b *Breaker) failed(now time.Duration, s *box, o *outcome.Outcome) {
	if t := b.tie.Load(); t != nil && s.Phase == Closed && s.cfg.judge(o.Class) == broken {
		t.Failed(b.key, now, o.Hint)
	}
}
