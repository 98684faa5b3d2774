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

// A Config configures Breakers. Store and Group are required.
type Config struct {
	Store fleet.Store
	Group string // the upstream, as in fleet.Ask
	Scope string // the attribute of a breaker.Group's keys, Policy.BreakerScope; "" for a breaker.Breaker

	Clock   clock.Clock   // nil means the system's
	Rand    *rand.Rand    // for simulators, whose runs must repeat; nil means the runtime's
	Timeout time.Duration // of one call to the store; 0 means 250ms

	// Lost and Back are called on the goroutine of Run unless nil. Lost reports that each breaker now decides for
	// itself, and why. Back reports that the fleet decides again.
	Lost func(error)
	Back func()
}

// Local is the set of breakers of a process: a *breaker.Breaker or a *breaker.Group. It is safe for concurrent use.
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
	poll     = time.Second            // between two reads of the store, give or take half
	again    = 250 * time.Millisecond // after a failed call to the store, plus up to the same time at random
	gap      = 50 * time.Millisecond  // minimum time between two rounds
	mostLost = 3                      // failed calls to the store in a row, after which each breaker decides for itself
	lead     = 10 * time.Second       // how long a successful round is valid if the loop stalls
)

// Breakers connect the breakers of one upstream in this process with the fleet. Run does the work. The breakers
// call the other methods. Breakers are safe for concurrent use.
type Breakers struct {
	conf   Config
	id     string // of this process, as the holder of a probe
	lane   uint64
	local  Local
	leads  atomic.Int64 // until when the fleet decides
	counts counts
	mail   mailbox

	turn    sync.Mutex // held during a round; guards the following fields
	pages   []*page
	names   []string
	seats   map[string]*seat
	pending *batch        // failures that the store may have counted
	lo, hi  time.Duration // the least and most that the store's clock is ahead of this process's
	looked  time.Duration // end of the latest read of the store
	pullAt  time.Duration // time of the next read of the store
	fails   int           // failed calls to the store in a row
	met     bool          // a round has succeeded
	returns bool          // the breakers decided for themselves until this round
	leaving bool          // this process returns its probes
}

// groupPages is the number of records for the state of a group. Several records make write conflicts between
// different keys rare.
const groupPages = 8

// A Fleet runs Breakers. *fleet.Fleet implements it. A Fleet must be safe for concurrent use.
type Fleet interface {
	Store() fleet.Store
	Attend(run func(context.Context)) (leave func()) // runs while the fleet does, until leave
}

// Join calls New with the store of a fleet, and Run until leave is called.
func Join(f Fleet, c Config, local Local) (leave func()) {
	c.Store = f.Store()
	b := New(c, local)
	return f.Attend(func(ctx context.Context) { _ = b.Run(ctx) }) // it returns why ctx ended
}

// New returns Breakers for the breakers of a process. It must be called before the breakers are used. Until Run
// runs, each breaker decides for itself.
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

// Leads reports whether the fleet decides which process probes, and when.
func (b *Breakers) Leads(now time.Duration) bool { return int64(now) < b.leads.Load() }

var errSlow = errors.New("the store did not answer in time")

// calling returns the context of one call to the store.
func (b *Breakers) calling(ctx context.Context) (context.Context, context.CancelFunc) {
	return b.conf.Clock.WithTimeout(ctx, b.conf.Timeout, errSlow)
}

// upTo returns a random time from 0 to less than d.
func (b *Breakers) upTo(d time.Duration) time.Duration {
	if b.conf.Rand != nil {
		return time.Duration(b.conf.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

// random returns a random number other than 0.
func (b *Breakers) random() uint64 {
	if b.conf.Rand != nil {
		return b.conf.Rand.Uint64() | 1
	}
	return rand.Uint64() | 1
}
