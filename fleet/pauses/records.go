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

// A Config is what Pauses need. Store, Group, Client and Book must be given.
type Config struct {
	Store  fleet.Store
	Group  string // the upstream, as in fleet.Ask
	Client string // this process
	Book   *pause.Book

	Clock   clock.Clock   // nil means the system's
	Rand    *rand.Rand    // for simulators, whose runs must repeat; nil means the runtime's
	Timeout time.Duration // of one call of the store; 0 means 1s

	// Longest is the longest pause for a reason; nil means pause.Longest for all.
	Longest func(pause.Reason) time.Duration

	// Heard, unless nil, hears on the goroutine of Run whom others have paused, or
	// paused for longer, and who was let go.
	Heard func(now time.Duration, paused, lifted []pause.Subject)

	// Damaged, unless nil, hears of a record that holds what cannot be, once for each
	// version of it.
	Damaged func(error)
}

const (
	name = "pauses" // of the record

	poll     = time.Second            // between two looks at the store, give or take half
	again    = 250 * time.Millisecond // after a call of the store that failed, and as much again at most
	gap      = 50 * time.Millisecond  // at least, between two rounds
	askGap   = 100 * time.Millisecond // between looks of a process that asks the store for other things
	mostLost = 3                      // calls of the store in a row that may fail before it is looked for less often
	swaps    = 5                      // how often a write is repeated when others were faster, in one round

	// keep is how long the record is kept that nobody writes: until nothing in it can
	// hold anybody.
	keep = pause.Longest + 24*time.Hour
)

// Pauses are those of one upstream in this process, as a member of a fleet. Run does all
// that is to be done.
type Pauses struct {
	conf   Config
	looked atomic.Int64 // when the store was last looked at
	soon   atomic.Bool  // it is to be looked at now

	wake struct {
		sync.Mutex
		up   bool               // there is something to do
		call context.CancelFunc // of a loop that sleeps
	}

	// Of the loop alone.
	page    pause.Set // what the store has, in instants of its clock
	version int64
	bad     int64         // the version that was complained of
	lo, hi  time.Duration // the store's clock is ahead of this process's by so much at least, and at most
	told    int64         // the changes of the book that the store knows of
	same    bool          // and nothing has come from there since
	pullAt  time.Duration // when to look at the store again
	fails   int           // calls of the store in a row that failed
}

// A Fleet is where pauses are joined: a *fleet.Fleet.
type Fleet interface {
	Store() fleet.Store
	Client() string                                  // tells this process from the others
	Running() bool                                   // whether what attends runs
	Attend(run func(context.Context)) (leave func()) // runs while the fleet does, until leave
}

// Of is New in a fleet, whose store and client take the place of the Config's.
func Of(f Fleet, c Config) *Pauses {
	c.Store, c.Client = f.Store(), f.Client()
	return New(c)
}

// New makes the pauses of a book those of the fleet, once Run runs.
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

// Changed tells that something has changed in the book.
func (p *Pauses) Changed() {
	p.wake.Lock()
	p.wake.up = true
	call := p.wake.call
	p.wake.Unlock()
	if call != nil {
		call()
	}
}

// Asks tells that the process asks the store for something else now: then it looks for
// pauses, too.
func (p *Pauses) Asks(now time.Duration) {
	if now-time.Duration(p.looked.Load()) >= askGap && p.soon.CompareAndSwap(false, true) {
		p.Changed()
	}
}

// Run keeps the book in step with the fleet until ctx ends, and returns its cause.
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

// leave tells the store what it does not know yet, if ctx was all that ended.
func (p *Pauses) leave(ctx context.Context) {
	if p.fails == 0 && p.told != p.conf.Book.Changes() {
		_ = p.agree(context.WithoutCancel(ctx))
	}
	p.conf.Book.Met()
}

// contact draws the conclusions from a round.
func (p *Pauses) contact(ctx context.Context, err error) {
	if ctx.Err() != nil { // it is this process that leaves
		return
	}
	p.conf.Book.Met() // or the store is away, and there is nobody to hear
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

// wait waits until there is something to do, and in any case so long that rounds are not
// too frequent.
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

// upTo is a random time from 0 to less than d.
func (p *Pauses) upTo(d time.Duration) time.Duration {
	if p.conf.Rand != nil {
		return time.Duration(p.conf.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}
