package fleet

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A lease is this process's share of one shared limit and key: blocks of units that the store has granted and
// that are not spent yet. Taking from them is local. If they are not enough, the group asks the store. A lease
// is safe for concurrent use. Only newLease creates one.
//
// Leases cannot exceed their limit, even if processes crash. Take a bucket with burst B and rate R. A block
// must be spent within a hold h after the request was sent, and the store grants it after that. The store then
// keeps a bucket with a burst of B - R*h. For smaller limits see spec.bucket.
//
//	          h                  t
//	|<----------------->|<--------------->|
//	s-h                 s                s+t
//	 units used here -->|=================|
//	|=====================================|<-- were granted here
//
// Units used from s to s+t were granted from s-h to s+t. By all processes together, these are at most B - R*h +
// R*(t+h), which is B + R*t: the limit. Units that a crashed process does not spend are only missing.
//
// For a rolling limit of N in a window W, the store counts each grant for W+h. The units used in W were granted
// in W+h, so they are at most N. A block of a calendar window expires Options.Guard before the window ends, so
// it is used in the window. Processes may differ in h; see hold.go. Units that are used during an outage of the
// store are not leased; see own and Members.
type lease struct {
	group  *Group
	source *source
	key    string
	id     uint64 // unique in the fleet of this process

	// passing marks the lease of a key for which its registry has no room. It may be dropped at any time and
	// spends no part. A lease that is crowdedOut is not kept at all, and the store is not asked for it. Both
	// are set before the lease is published. A lease that was evicted is dropped, and its queues must be, too.
	passing    bool
	crowdedOut bool
	evicted    atomic.Bool

	// blocks are the blocks that are held. Decisions take from them without a lock. A slot may be nil, or
	// contain a block that is empty or expired.
	blocks [blocksHeld]atomic.Pointer[granted]

	paused atomic.Int64 // no units are taken before this instant, in nanoseconds of the clock; unpaused if there is no pause
	urgent atomic.Bool  // pending settlements must be sent without waiting for a request
	waits  atomic.Int32 // waiting calls in all queues; later calls leave available units to them
	gone   atomic.Bool  // the registry has dropped the lease; a call that found it before looks it up again
	keeps  atomic.Int64 // from this instant units are kept for a waiting call, in nanoseconds of the clock; bucket.Never if there is none
	step   atomic.Int64 // between the marks of its units, from the latest grant; 0 before

	// mu is the last lock before the locks of maps; see Group.
	mu      sync.Mutex
	seen    sight        // the latest response
	pending []Settlement // to be sent with the next request
	back    returned
	short   []shortage // queues that ask the store when enough has returned
	holds   holds      // of a budget
	kept    []kept     // for waiting calls, one of each queue
	demand  demand

	begin beginning
	own   own
	taken taken
}

const (
	// blocksHeld is the number of blocks that a lease can have. Requests of different queues, for calls with
	// different other limits, grant blocks with different expiries.
	blocksHeld = 4
	unpaused   = time.Duration(math.MinInt64 / 2) // the end of no pause
)

var _ limit.Leased = (*lease)(nil)

// newLease makes an empty lease for one key of a registry.
func newLease(s *source, key string) *lease {
	p := &lease{group: s.group, source: s, key: key, id: s.group.fleet.nextID()}
	p.paused.Store(int64(unpaused))
	p.keeps.Store(int64(bucket.Never))
	return p
}

// spec returns how the limit is shared now.
func (p *lease) spec() *spec { return p.source.spec.Load() }

// Kept reports whether the registry keeps the lease.
func (p *lease) Kept() bool { return !p.passing }

// Take takes n units from the blocks that are held. Without the store, it takes them from this process's part,
// unless other calls wait for those. A failure does not mean that the limit has no units: the caller must ask
// the group.
func (p *lease) Take(now time.Duration, n int64) (limit.Turn, time.Duration, bool) {
	if n == 0 { // independent of the limit's state
		return limit.Turn{}, 0, true
	}
	if now < time.Duration(p.paused.Load()) {
		return limit.Turn{}, time.Duration(p.paused.Load()) - now, false
	}
	if now >= time.Duration(p.keeps.Load()) { // the queue decides whose turn it is
		return limit.Turn{}, 0, false
	}
	t, _, ok := p.fromBlocks(now, n)
	if !ok && p.alone(now) && p.waits.Load() == 0 {
		t, _, ok = p.drawOwn(now, n)
	}
	return t, 0, ok
}

// draw is Take for the first waiting call. It also returns the expiry of the units, which only their source
// knows: another block may be there a moment later.
func (p *lease) draw(now time.Duration, n int64) (limit.Turn, expiry, bool) {
	if n == 0 {
		return limit.Turn{}, noExpiry, true
	}
	if now < time.Duration(p.paused.Load()) {
		return limit.Turn{}, noExpiry, false
	}
	t, b, ok := p.fromBlocks(now, n)
	switch {
	case b != nil:
		return t, b.until, true
	case !ok && p.alone(now):
		return p.drawOwn(now, n)
	}
	return t, noExpiry, ok
}

// alone reports whether units may be available without the store. Either the process serves calls from its
// part, or the latest exchange failed, so that standby units of a calendar window may be needed.
func (p *lease) alone(now time.Duration) bool {
	return now > time.Duration(p.group.lone.Load()) || p.group.failing.Load()
}

// Ask returns 0 unless there is a pause: the wait of a call is unknown before the store responds.
func (p *lease) Ask(now time.Duration, n int64) time.Duration {
	switch {
	case n == 0:
		return 0
	case n < 0 || n > p.spec().most():
		return bucket.Never
	}
	return p.Paused(now)
}

// Owe charges units that were used without a grant: to this process's part if the process spends it, and
// otherwise to the store.
func (p *lease) Owe(now time.Duration, n int64) {
	if n > 0 && !p.oweOwn(now, n) {
		p.settle(now, Settlement{Owe: n})
	}
}

// Paused returns the remaining time of a pause of this process.
func (p *lease) Paused(now time.Duration) time.Duration {
	return max(0, time.Duration(p.paused.Load())-now)
}

// Back returns units to this process's part or to the store.
func (p *lease) Back(now time.Duration, t limit.Turn, n int64) {
	switch n = min(n, t.Cost); {
	case n <= 0:
	case isOwn(t):
		p.backOwn(now, t, n)
		p.roused()
	case p.standsAgain(now, t, n):
		p.roused()
	case t.Low == 0 && t.Place < 0: // without a mark
	case t.Low != 0 || t.Place != 0:
		p.gaveBack(now, p.mark(t), n)
		p.settle(now, Settlement{Back: n, Mark: p.mark(t)})
	}
}

// Pause pauses the limit in this process only. Other processes learn of pauses by other means.
func (p *lease) Pause(now, until time.Duration) {
	if until > now {
		raiseInstant(&p.paused, int64(until))
	}
}

// Resume ends a pause in this process.
func (p *lease) Resume(now time.Duration) {
	if old := p.paused.Load(); old > int64(now) {
		p.paused.CompareAndSwap(old, int64(unpaused))
		p.roused()
	}
}

// roused makes waiting calls check again: units may be available sooner than predicted.
func (p *lease) roused() {
	if p.waits.Load() > 0 {
		p.group.nudge()
	}
}

// raiseInstant sets word to at unless it is already later.
func raiseInstant(word *atomic.Int64, at int64) {
	for old := word.Load(); at > old && !word.CompareAndSwap(old, at); old = word.Load() {
	}
}

// Retire reports whether the lease can be dropped to make room. A lease with units, waiting calls or open
// reports cannot.
func (p *lease) Retire(now time.Duration) bool {
	if p.held(now) > 0 || p.paused.Load() > int64(now) || p.waits.Load() > 0 || p.keepsOwn(now) || p.keepsShare(now) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Dropping it would lose its pending settlements and its recent rate of use.
	if len(p.pending)+len(p.holds.back) > 0 || now < p.demand.at+idleQueue {
		return false
	}
	return p.gone.CompareAndSwap(false, true)
}

// Retired reports whether Retire has taken the lease out of use.
func (p *lease) Retired() bool { return p.gone.Load() }

// returned describes the units that a process has returned.
type returned struct {
	all  int64         // all units that were ever pending to return
	sent time.Duration // when the latest of them were sent to the store
}

// demand measures how fast units are used, which determines the size of blocks.
type demand struct {
	at     time.Duration // of the last change
	rate   float64       // units per second
	asked  int64         // units taken from the store since
	blocks int64         // units of the blocks in requests under way
	primed bool
}

// demandMemory is the time constant of demand.rate.
const demandMemory = time.Second

// used records n units that were taken from the store and count as used. The rate is an exponential average.
func (d *demand) used(now time.Duration, n int64) {
	d.asked += n
	dt := (now - d.at).Seconds()
	if !d.primed {
		d.at, d.primed = now, true
		return
	}
	if dt < 0.02 {
		return
	}
	keep := math.Exp(-dt / demandMemory.Seconds())
	d.rate = d.rate*keep + float64(d.asked)/dt*(1-keep)
	d.at, d.asked = now, 0
}
