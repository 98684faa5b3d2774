package breakers

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
	"github.com/seed1158cd35/weir/fleet"
)

// A Config is what Breakers need. Store and Group must be given.
type Config struct {
	Store fleet.Store
	Group string // the upstream, as in fleet.Ask
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
	conf   Config
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

// A Fleet is where breakers are joined: a *fleet.Fleet.
type Fleet interface {
	Store() fleet.Store
	Attend(run func(context.Context)) (leave func()) // runs while the fleet does, until leave
}

// Join is New and Run in a fleet, whose store takes the place of the Config's, until leave.
func Join(f Fleet, c Config, local Local) (leave func()) {
	c.Store = f.Store()
	b := New(c, local)
	return f.Attend(func(ctx context.Context) { _ = b.Run(ctx) }) // it returns why ctx ended
}

// New makes the breakers of a process members of the fleet. It is to be called
// before they are used; until Run runs each decides for itself.
func New(c Config, local Local) *Breakers {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Timeout <= 0 {
		c.Timeout = 250 * time.Millisecond
	}
	b := &Breakers{conf: c, local: local, seats: make(map[string]*seat)}
	b.id, b.lane = strconv.FormatUint(b.random(), 36), b.random()
	b.newPages()
	local.Join(b)
	return b
}

func (b *Breakers) newPages() {
	if b.conf.Scope == "" {
		b.names = []string{"breaker"}
	} else {
		for i := range groupPages {
			b.names = append(b.names, "breakers/"+label(b.conf.Scope)+"/"+strconv.Itoa(i))
		}
	}
	for _, name := range b.names {
		b.pages = append(b.pages, &page{name: name})
	}
}

// Leads reports whether the fleet says when to probe.
func (b *Breakers) Leads(now time.Duration) bool { return int64(now) < b.leads.Load() }

var errSlow = errors.New("the store did not answer in time")

// calling is the context of one call of the store.
func (b *Breakers) calling(ctx context.Context) (context.Context, context.CancelFunc) {
	return b.conf.Clock.WithTimeout(ctx, b.conf.Timeout, errSlow)
}

// upTo is a random time from 0 to less than d.
func (b *Breakers) upTo(d time.Duration) time.Duration {
	if b.conf.Rand != nil {
		return time.Duration(b.conf.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

// random is never 0.
func (b *Breakers) random() uint64 {
	if b.conf.Rand != nil {
		return b.conf.Rand.Uint64() | 1
	}
	return rand.Uint64() | 1
}
