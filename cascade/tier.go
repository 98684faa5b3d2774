package cascade

import (
	"sync"
	"sync/atomic"
	"time"
)

// A tier is what is known of one tier, whatever the configuration says of it at
// the time. While it is up and nothing has failed it is asked and answers without
// a lock.
type tier struct {
	name string

	open   atomic.Uint64 // while it is up: its generation + 1; else 0
	cools  atomic.Int64  // while it cools: until when; else 0
	failed atomic.Bool   // since the last success: the next one must be told

	answered atomic.Int64
	failures atomic.Int64
	empty    atomic.Int64
	skipped  atomic.Int64

	mu      sync.Mutex // held for the state and the news, never while calling out
	state   state
	told    mark     // the change before
	untold  []Change // at most mostUntold
	telling bool
}

// mark is what a change must differ in to be news: a probe that gives its place
// back to the next is none.
type mark struct {
	phase Phase
	step  int
}

// mostUntold bounds what waits for a listener that hangs.
const mostUntold = 256

// A Change is a change of a tier's phase, or a step of its ramp.
type Change struct {
	Tier     string
	From, To Phase
	Why      Cause
	Code     string        // the upstream's word for the failure, if it was one
	For      time.Duration // how long it cools, if it does
	Share    int           // percentage of the calls that may now ask it
}

// a permission is a tier's answer to a call that wants to ask it.
type permission struct {
	ticket
	ok    bool
	now   Phase         // what it is in if the answer is no
	cause Cause         // of that
	wait  time.Duration // until another try
}

func (t *tier) ask(c *Cascade, p *plan, patience time.Duration) (a permission) {
	if open := t.open.Load(); open != 0 {
		return permission{ticket: ticket{gen: open - 1}, ok: true}
	}
	now := c.clock.Now()
	t.change(c, p, now, "", func(s *state) {
		a.ticket, a.wait, a.ok = s.ask(now, patience, &p.cfg)
		a.now, a.cause = s.phase, s.cause
	})
	return a
}

func (t *tier) hear(c *Cascade, p *plan, tk ticket, v verdict, code string) {
	if t.open.Load() == tk.gen+1 && (v.kind != broken && v.kind != shut) && (v.kind != works || !t.failed.Load()) {
		return // it is up, and this changes nothing
	}
	now := c.clock.Now()
	t.change(c, p, now, code, func(s *state) { s.hear(now, &p.cfg, tk, v) })
}

// change does something to the state, and tells what is new.
func (t *tier) change(c *Cascade, p *plan, now time.Duration, code string, do func(*state)) {
	t.mu.Lock()
	do(&t.state)
	t.publish()
	t.news(c, p, now, code)
	t.mu.Unlock()
	t.tell(c)
}

// publish lets calls pass without the lock while that is right.
func (t *tier) publish() {
	t.failed.Store(t.state.inARow > 0)
	if t.state.phase == Up {
		t.open.Store(t.state.gen + 1)
	} else {
		t.open.Store(0)
	}
	if t.state.phase == Cooling {
		t.cools.Store(int64(t.state.until))
	} else {
		t.cools.Store(0)
	}
}

// news queues a change, if it is one, under the lock: so all are told in order.
func (t *tier) news(c *Cascade, p *plan, now time.Duration, code string) {
	s := &t.state
	m := mark{phase: s.phase}
	if s.phase == Ramping {
		m.step = s.step
	}
	if m == t.told || s.phase == Cooling && s.cause == CooledDown {
		return
	}
	from := t.told.phase
	t.told = m
	if c.options.Changed == nil || len(t.untold) >= mostUntold {
		return
	}
	change := Change{Tier: t.name, From: from, To: s.phase, Why: s.cause, Code: code, Share: s.share(&p.cfg)}
	if s.phase == Cooling {
		change.For = s.until - now
	}
	t.untold = append(t.untold, change)
}

// tell delivers what is queued, unless another goroutine is at it already,
// perhaps one further up this very stack: that one delivers the rest.
func (t *tier) tell(c *Cascade) {
	if c.options.Changed == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.telling {
		return
	}
	t.telling = true
	defer func() { t.telling = false }() // also when a listener ends its goroutine
	for len(t.untold) > 0 {
		change := t.untold[0]
		t.untold = t.untold[1:]
		t.unlocked(func() { c.tell(change) })
	}
	t.untold = nil
}

func (t *tier) unlocked(f func()) {
	t.mu.Unlock()
	defer t.mu.Lock()
	f()
}

// coolsBeyond reports whether the tier will not be asked before the instant at.
func (t *tier) coolsBeyond(at time.Duration) bool { return time.Duration(t.cools.Load()) > at }
