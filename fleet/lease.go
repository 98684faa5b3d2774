package fleet

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A lease is what this process holds of one limit and key that a fleet shares: blocks of units
// that the store has granted and that are not spent yet. Taking from it is local;
// when it has not enough, the group asks the store. It is safe for concurrent use; only newLease makes one.
//
// Leases cannot let go more than their limit, whatever becomes of those who hold them. Take a bucket with burst B and
// rate R, and let a block be spent within a hold h after the store was asked for it, which is before the store granted
// it. The store then keeps a bucket with a burst of B - R*h (of limits too small for that see spec.bucket):
//
//	          h                  t
//	|<----------------->|<--------------->|
//	s-h                 s                s+t
//	 what goes here  -->|=================|
//	|=====================================|<-- was granted here
//
// What goes from s to s+t was granted from s-h to s+t, by all processes together at most B - R*h + R*(t+h), which is
// B + R*t: the limit. What is never spent, of a process that crashed, is only missing. Of a rolling limit of N in a
// window W the store counts for W+h what it grants, so that what goes in W was granted in W+h and is N at most. A block of
// a calendar window ends Options.Guard before the window does, and goes in it. Processes may differ in h: see hold.go. What is
// used while the store is away is no lease: see own and Members.
type lease struct {
	group  *Group
	source *source
	key    string
	id     uint64 // tells it from the fleet's others

	// passing is of a key for which its registry has no room: the lease may be forgotten at any time, and has no
	// part of its own. One that is crowdedOut is not kept at all, and the store is not asked for it. Both are set
	// before others see the lease. One that was evicted is forgotten, as its queues must be.
	passing    bool
	crowdedOut bool
	evicted    atomic.Bool

	// blocks are what is held. Decisions take from them without a lock; a slot is nil, or holds a block that may be
	// empty or have had its time.
	blocks [blocksHeld]atomic.Pointer[granted]

	paused atomic.Int64 // the instant before which nothing goes, in nanoseconds of the clock; unpaused for none
	urgent atomic.Bool  // what is pending must be told without waiting for an ask
	waits  atomic.Int32 // calls that wait for it, in whatever queue: those that come later leave to them what there is
	gone   atomic.Bool  // its registry has forgotten it, and a call that has found it before looks again
	keeps  atomic.Int64 // the instant from which something is kept for who waits, in nanoseconds of the clock; bucket.Never for none
	step   atomic.Int64 // between the marks of its units, as the store said last; 0 before

	// mu is the last lock but those of maps; see Group.
	mu      sync.Mutex
	seen    sight        // what the store said last
	pending []Settlement // to be told to the store with the next ask
	came    int64        // units that were ever pending to come back
	short   []shortage   // who asks as soon as so much has come back
	kept    []kept       // for those who wait, one of each queue
	demand  demand

	begin beginning
	own   own
	taken taken
}

const (
	// blocksHeld is how many blocks a lease has at once: asks of different queues, for calls with other limits besides, bring
	// blocks that end at different times.
	blocksHeld = 4
	unpaused   = time.Duration(math.MinInt64 / 2) // the end of no pause
)

var _ limit.Leased = (*lease)(nil)

// newLease makes a lease that holds nothing, of one key of a registry.
func newLease(s *source, key string) *lease {
	p := &lease{group: s.group, source: s, key: key, id: s.group.fleet.nextID()}
	p.paused.Store(int64(unpaused))
	p.keeps.Store(int64(bucket.Never))
	return p
}

// spec is how the limit is shared now.
func (p *lease) spec() *spec { return p.source.spec.Load() }

// Kept reports whether the registry keeps the lease.
func (p *lease) Kept() bool { return !p.passing }

// Take takes n units from the blocks that are held, or without the store from what this
// process has itself unless others wait for that. That there are not enough says
// nothing of the limit: the group has to be asked.
func (p *lease) Take(now time.Duration, n int64) (limit.Turn, time.Duration, bool) {
	if n == 0 { // whatever holds the limit
		return limit.Turn{}, 0, true
	}
	if now < time.Duration(p.paused.Load()) {
		return limit.Turn{}, time.Duration(p.paused.Load()) - now, false
	}
	if now >= time.Duration(p.keeps.Load()) { // the queue says in whose turn
		return limit.Turn{}, 0, false
	}
	t, _, ok := p.fromBlocks(now, n)
	if !ok && p.alone(now) && p.waits.Load() == 0 {
		t, _, ok = p.drawOwn(now, n)
	}
	return t, 0, ok
}

// draw is Take for who waits at the front, and says before when the units must be used. Only what they
// are taken from knows that: another block may be there a moment later.
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

// alone reports whether there may be something to take without the store: the process serves calls by itself, or the
// latest exchange failed, so that what stands by of a calendar window may be needed.
func (p *lease) alone(now time.Duration) bool {
	return now > time.Duration(p.group.lone.Load()) || p.group.failing.Load()
}

// Ask is 0 unless there is a pause: how long a call has to wait is not known before the store was asked.
func (p *lease) Ask(now time.Duration, n int64) time.Duration {
	switch {
	case n == 0:
		return 0
	case n < 0 || n > p.spec().most():
		return bucket.Never
	}
	return p.Paused(now)
}

// Owe has units charged that were used without being granted: of what the process uses by itself if the store
// is away.
func (p *lease) Owe(now time.Duration, n int64) {
	if n > 0 && !p.oweOwn(now, n) {
		p.settle(now, Settlement{Owe: n})
	}
}

// Paused is how long a pause of this process still lasts.
func (p *lease) Paused(now time.Duration) time.Duration {
	return max(0, time.Duration(p.paused.Load())-now)
}

// Back has units come back, to this process's part or to the store.
func (p *lease) Back(now time.Duration, t limit.Turn, n int64) {
	switch n = min(n, t.Cost); {
	case n <= 0:
	case isOwn(t):
		p.backOwn(now, t, n)
		p.roused()
	case p.standsAgain(now, t, n):
		p.roused()
	case t.Low == 0 && t.Place < 0: // they had no mark
	case t.Low != 0 || t.Place != 0:
		p.gaveBack(now, p.mark(t), n)
		p.settle(now, Settlement{Back: n, Mark: p.mark(t)})
	}
}

// Pause stops this process alone: that others hear of it is not the limit's business.
func (p *lease) Pause(now, until time.Duration) {
	if until > now {
		raiseInstant(&p.paused, int64(until))
	}
}

// Resume ends a pause of this process.
func (p *lease) Resume(now time.Duration) {
	if old := p.paused.Load(); old > int64(now) {
		p.paused.CompareAndSwap(old, int64(unpaused))
		p.roused()
	}
}

// roused has those who wait for the lease look again: what they were told to wait for may be there sooner.
func (p *lease) roused() {
	if p.waits.Load() > 0 {
		p.group.nudge()
	}
}

// raiseInstant sets a word to at unless it is later already.
func raiseInstant(word *atomic.Int64, at int64) {
	for old := word.Load(); at > old && !word.CompareAndSwap(old, at); old = word.Load() {
	}
}

// Retire: a lease that holds nothing is forgotten when room is needed.
func (p *lease) Retire(now time.Duration) bool {
	if p.held(now) > 0 || p.paused.Load() > int64(now) || p.waits.Load() > 0 || p.keepsOwn(now) || p.keepsShare(now) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// What it still has to tell would be lost, and how fast it is used.
	if len(p.pending) > 0 || now < p.demand.at+idleQueue {
		return false
	}
	return p.gone.CompareAndSwap(false, true)
}

// Retired reports whether Retire has taken it out of use.
func (p *lease) Retired() bool { return p.gone.Load() }

// demand is how fast units are used: how many are worth taking at once.
type demand struct {
	at     time.Duration // of the last change
	rate   float64       // units a second
	asked  int64         // units taken from the store since
	primed bool
}

// demandMemory is how long demand.rate looks back.
const demandMemory = time.Second

// used notes that n units were taken from the store and as good as used. The rate is an average that forgets
// exponentially, with demandMemory as its time constant.
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
