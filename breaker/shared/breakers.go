// Package shared makes one breaker of those that many processes have for the same
// upstream: what trips one trips all, one call in the whole fleet probes, and the
// fleet agrees on what it found.
//
// No call waits for the store. Each process keeps its breakers as before, and a
// loop beside them carries changes to the store and back: its own at once, those of
// others within two seconds. When the store cannot be reached every breaker decides
// for itself, as though there were no fleet.
//
// # What the rules of a breaker.Config mean for a fleet
//
// Failures within Window are those of the whole fleet: the processes add theirs up
// in the store, and whoever's makes the sum reach Failures opens the breaker for
// all. Fifty processes that see one failure each make fifty. So a fleet needs a
// larger number than one process.
//
// Consecutive and Share need the successes too, which nobody tells the store:
// there are too many of them. Each process judges its own calls by these rules,
// and the first that trips trips all. One process whose own network is broken can
// therefore open the breaker of the fleet; it closes when another's probe succeeds.
//
// All processes should have the same Config. While they differ, each goes by its
// own; who opens a breaker says for how long.
package shared

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// A Config is what Breakers need. Store and Group must be given.
type Config struct {
	Store limit.Store
	Group string // the upstream, as in limit.Ask
	Scope string // what the keys of a breaker.Group are, Policy.BreakerScope; "" for a breaker.Breaker

	Clock   clock.Clock   // nil means the system's
	Rand    *rand.Rand    // for simulators, whose runs must repeat; nil means the runtime's
	Timeout time.Duration // of one call of the store; 0 means 250ms

	// Lost and Back, unless nil, hear on the goroutine of Run that the breakers
	// decide for themselves from now on, and why, and that the fleet leads again.
	Lost func(error)
	Back func()
}

// Local is where a process has its breakers: a *breaker.Breaker or a
// *breaker.Group.
type Local interface {
	Join(breaker.Fleet)
	All() iter.Seq2[string, *breaker.Breaker]
}

var (
	_ Local         = (*breaker.Breaker)(nil)
	_ Local         = (*breaker.Group)(nil)
	_ breaker.Fleet = (*Breakers)(nil)
)

const (
	poll     = time.Second            // between two looks at the store, give or take half
	again    = 250 * time.Millisecond // after a call of the store that failed, and as much again at most
	gap      = 50 * time.Millisecond  // at least, between two rounds
	mostLost = 3                      // calls of the store in a row that may fail
	lead     = 10 * time.Second       // how long a look counts, should the loop stand still
)

// Breakers are the breakers of one upstream in this process, as members of a
// fleet. Run does all that is to be done. Its other methods are for the breakers.
type Breakers struct {
	Config
	id     string // of this process, as the holder of a probe
	lane   uint64
	local  Local
	leads  atomic.Int64 // until when the fleet leads
	counts counts
	mail   mailbox

	turn    sync.Mutex // one round at a time; guards what follows
	pages   []*page
	names   []string
	seats   map[string]*seat
	pending *batch        // failures that the store may or may not have counted
	lo, hi  time.Duration // the store's clock is ahead of this process's by so much at least, and at most
	looked  time.Duration // when the latest look at the store was over
	pullAt  time.Duration // when to look at the store again
	fails   int           // calls of the store in a row that failed
	met     bool          // there was a round that succeeded
	returns bool          // the breakers decided for themselves until this round
	leaving bool          // this process gives back what it was lent
}

// groupPages is into how many records the state of a group is divided, so that
// changes of different keys seldom meet.
const groupPages = 8

// New makes the breakers of a process members of the fleet. It is to be called
// before they are used; until Run runs each decides for itself.
func New(c Config, local Local) *Breakers {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Timeout <= 0 {
		c.Timeout = 250 * time.Millisecond
	}
	b := &Breakers{Config: c, local: local, seats: make(map[string]*seat)}
	b.id, b.lane = strconv.FormatUint(b.random(), 36), b.random()
	b.newPages()
	local.Join(b)
	return b
}

func (b *Breakers) newPages() {
	if b.Scope == "" {
		b.names = []string{"breaker"}
	} else {
		for i := range groupPages {
			b.names = append(b.names, "breakers/"+label(b.Scope)+"/"+strconv.Itoa(i))
		}
	}
	for _, name := range b.names {
		b.pages = append(b.pages, &page{name: name})
	}
}

// Run keeps the breakers in step with the fleet until ctx ends, and returns its
// cause. From then on each decides for itself; a probe that this process might have
// made is left to another.
func (b *Breakers) Run(ctx context.Context) error {
	defer b.leave(ctx)
	for ctx.Err() == nil {
		began := b.Clock.Now()
		b.wait(ctx, began, b.Sync(ctx))
	}
	return context.Cause(ctx)
}

// Sync does one round: it tells the store what is new here, looks at what is new
// there if it is time to, and returns when to come again at the latest. Run calls
// it; who calls it himself drives the breakers by hand.
func (b *Breakers) Sync(ctx context.Context) (next time.Duration) {
	b.turn.Lock()
	defer b.turn.Unlock()
	err := b.round(ctx)
	b.contact(ctx, err)
	return b.next()
}

func (b *Breakers) round(ctx context.Context) error {
	b.collect()
	b.returns = b.fails >= mostLost || !b.met
	if b.fails > 0 || b.Clock.Now() >= b.pullAt {
		if err := b.pull(ctx); err != nil {
			return err
		}
	}
	if err := b.agree(ctx); err != nil {
		return err
	}
	if err := b.push(ctx); err != nil {
		return err
	}
	return b.agree(ctx) // on what the failures of all add up to
}

// contact draws the conclusions from a round.
func (b *Breakers) contact(ctx context.Context, err error) {
	now := b.Clock.Now()
	switch {
	case err == nil:
		away := b.fails >= mostLost
		b.fails, b.met = 0, true
		b.leads.Store(int64(now + lead))
		if away && b.Back != nil {
			b.Back()
		}
	case ctx.Err() != nil: // it is this process that leaves
	default:
		b.counts.failed.Add(1)
		b.fails++
		b.pullAt = now + again + b.upTo(again)
		if b.fails >= mostLost {
			b.leads.Store(0)
			b.pullAt = now + poll/2 + b.upTo(poll)
		}
		if b.fails == mostLost && b.Lost != nil {
			b.Lost(err)
		}
	}
}

// next is when there is something to do by itself.
func (b *Breakers) next() time.Duration {
	at := b.pullAt
	if b.fails > 0 {
		return at
	}
	now := b.Clock.Now()
	for _, t := range b.seats {
		at = min(at, t.tries())
		if t.lease > now {
			at = min(at, t.lease)
		}
	}
	return at
}

// wait waits for the instant, or until there is news if the store can hear it, and
// in any case so long that rounds are not too frequent.
func (b *Breakers) wait(ctx context.Context, began, until time.Duration) {
	if b.fails == 0 {
		nap, cancel := context.WithCancel(ctx)
		defer cancel()
		if b.mail.onNews(cancel) {
			_ = b.Clock.Sleep(nap, until-b.Clock.Now())
		}
		b.mail.onNews(nil)
		until = began + gap
	}
	_ = b.Clock.Sleep(ctx, max(until, began+gap)-b.Clock.Now())
}

// leave gives back what the fleet lent to this process, if ctx was all that
// ended.
func (b *Breakers) leave(ctx context.Context) {
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.met && b.fails == 0 {
		b.leaving = true
		_ = b.agree(context.WithoutCancel(ctx))
		b.leaving = false
	}
	b.leads.Store(0)
	b.pullAt = 0
}

// Leads reports whether the fleet says when to probe.
func (b *Breakers) Leads(now time.Duration) bool { return int64(now) < b.leads.Load() }

var errSlow = errors.New("the store did not answer in time")

// calling is the context of one call of the store.
func (b *Breakers) calling(ctx context.Context) (context.Context, context.CancelFunc) {
	return b.Clock.WithTimeout(ctx, b.Timeout, errSlow)
}

// upTo is a random time from 0 to less than d.
func (b *Breakers) upTo(d time.Duration) time.Duration {
	if b.Rand != nil {
		return time.Duration(b.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

// random is never 0.
func (b *Breakers) random() uint64 {
	if b.Rand != nil {
		return b.Rand.Uint64() | 1
	}
	return rand.Uint64() | 1
}

// Stats count what became of the calls of the store.
type Stats struct {
	Loads, Takes, Swaps int64
	Conflicts           int64 // swaps that another process was faster with
	Failed              int64 // rounds that were broken off
}

type counts struct{ loads, takes, swaps, conflicts, failed atomic.Int64 }

// Stats are the figures since New.
func (b *Breakers) Stats() Stats {
	c := &b.counts
	return Stats{c.loads.Load(), c.takes.Load(), c.swaps.Load(), c.conflicts.Load(), c.failed.Load()}
}
