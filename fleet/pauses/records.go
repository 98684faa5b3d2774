package pauses

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A Config configures Pauses. Store, Group, Client and Book are required.
type Config struct {
	Store  fleet.Store
	Group  string // the upstream, as in fleet.Ask
	Client string // this process
	Book   *pause.Book

	Clock   clock.Clock   // nil means the system's
	Rand    *rand.Rand    // for simulators, whose runs must repeat; nil means the runtime's
	Timeout time.Duration // of one call to the store; 0 means 1s

	// Longest returns the longest pause for a reason. nil means pause.Longest for all.
	Longest func(pause.Reason) time.Duration

	// Heard, if not nil, is called on the goroutine of Run with the subjects that other processes have paused, or
	// paused for longer, and that they have resumed.
	Heard func(now time.Duration, paused, lifted []pause.Subject)

	// Damaged, if not nil, is called once for each version of the record that contains invalid items.
	Damaged func(error)
}

const (
	name = "pauses" // of the record

	poll     = time.Second            // between two reads of the store, give or take half
	again    = 250 * time.Millisecond // after a failed call to the store, plus up to the same time at random
	gap      = 50 * time.Millisecond  // minimum time between two rounds
	askGap   = 100 * time.Millisecond // between reads of a process that sends the store other requests
	mostLost = 3                      // failed calls to the store in a row, after which it is read less often
	swaps    = 5                      // how often a round repeats a write that conflicts with other processes

	// keep is how long the store keeps a record that no process writes. After this time, no pause in it can be in
	// force.
	keep = pause.Longest + 24*time.Hour
)

// Pauses share the pauses of one upstream between this process and the fleet. Run does the work. Changed and Asks
// are safe for concurrent use.
type Pauses struct {
	conf   Config
	looked atomic.Int64 // time of the latest read of the store
	soon   atomic.Bool  // the store must be read now

	wake struct {
		sync.Mutex
		up   bool               // there is work
		call context.CancelFunc // ends the sleep of the loop
	}

	// Only the loop uses the following fields.
	page    pause.Set // the store's entries, in instants of its clock
	version int64
	bad     int64         // the version that was reported as damaged
	lo, hi  time.Duration // the least and most that the store's clock is ahead of this process's
	told    int64         // the changes of the book that the store has
	same    bool          // and the store has had no changes since
	pullAt  time.Duration // time of the next read of the store
	fails   int           // failed calls to the store in a row
}

// A Fleet runs Pauses. *fleet.Fleet implements it. A Fleet must be safe for concurrent use.
type Fleet interface {
	Store() fleet.Store
	Client() string                                  // identifies this process
	Running() bool                                   // reports whether attached functions run
	Attend(run func(context.Context)) (leave func()) // runs while the fleet does, until leave
}

// Of returns New with the store and the client of a fleet.
func Of(f Fleet, c Config) *Pauses {
	c.Store, c.Client = f.Store(), f.Client()
	return New(c)
}

// New returns Pauses that share a book with the fleet while Run runs.
func New(c Config) *Pauses {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	if c.Longest == nil {
		c.Longest = func(pause.Reason) time.Duration { return pause.Longest }
	}
	now := c.Clock.Now()
	c.Book.Share(c.Client, c.Clock.Wall(now).UnixMicro()-int64(now/time.Microsecond))
	return &Pauses{conf: c, page: make(pause.Set)}
}

// Changed reports that the book has changed.
func (p *Pauses) Changed() {
	p.wake.Lock()
	p.wake.up = true
	call := p.wake.call
	p.wake.Unlock()
	if call != nil {
		call()
	}
}

// Asks reports that the process sends the store another request. It triggers a read of the pauses.
func (p *Pauses) Asks(now time.Duration) {
	if now-time.Duration(p.looked.Load()) >= askGap && p.soon.CompareAndSwap(false, true) {
		p.Changed()
	}
}

// Run synchronizes the book with the fleet until ctx ends, and returns its cause.
func (p *Pauses) Run(ctx context.Context) error {
	defer p.leave(ctx)
	for ctx.Err() == nil {
		began := p.conf.Clock.Now()
		err := p.round(ctx)
		p.contact(ctx, err)
		p.wait(ctx, began)
	}
	return context.Cause(ctx)
}

// leave writes the remaining changes to the store, unless the store has failed.
func (p *Pauses) leave(ctx context.Context) {
	if p.fails == 0 && p.told != p.conf.Book.Changes() {
		_ = p.agree(context.WithoutCancel(ctx))
	}
	p.conf.Book.Met()
}

// contact evaluates the result of a round.
func (p *Pauses) contact(ctx context.Context, err error) {
	if ctx.Err() != nil { // this process leaves
		return
	}
	p.conf.Book.Met() // after a failure too, because callers must not wait for the store
	now := p.conf.Clock.Now()
	if err == nil {
		p.fails = 0
		return
	}
	p.fails++
	p.pullAt = now + again + p.upTo(again)
	if p.fails >= mostLost {
		p.pullAt = now + poll/2 + p.upTo(poll)
	}
}

// wait waits until there is work, and ensures a minimum time between rounds.
func (p *Pauses) wait(ctx context.Context, began time.Duration) {
	c := p.conf.Clock
	if p.fails == 0 {
		if nap := p.pullAt - c.Now(); nap > 0 {
			sleep, cancel := c.WithTimeout(ctx, nap, errAwake)
			p.wake.Lock()
			p.wake.call = cancel
			up := p.wake.up
			p.wake.Unlock()
			if !up {
				_ = c.Sleep(sleep, nap)
			}
			p.wake.Lock()
			p.wake.call = nil
			p.wake.Unlock()
			cancel()
		}
		_ = c.Sleep(ctx, began+gap-c.Now())
		return
	}
	_ = c.Sleep(ctx, max(p.pullAt, began+gap)-c.Now())
}

var (
	errAwake = errors.New("there is something to do")
	errSlow  = errors.New("the store did not answer in time")
)

// upTo returns a random time from 0 to less than d.
func (p *Pauses) upTo(d time.Duration) time.Duration {
	if p.conf.Rand != nil {
		return time.Duration(p.conf.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}
