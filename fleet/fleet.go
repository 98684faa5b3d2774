// Package fleet holds many processes to limits that they share. A Store keeps what was granted of each limit
// and who shares it; a Fleet is one process's side: it takes blocks of units at once and spends them locally
// (leases), asks once for all callers that wait for the same, and goes on with its part of each limit while
// the store is away. The limiters of package limit come from its Groups. It knows nothing of calls: those are
// the business of package weir.
//
// How a call gets what it lacks:
//
//	limit.Charges.Take -> lease.Take          a block that is held: no lock, no wait
//	limit.Charges.Fetch -> Group.Fetch        none: the call stands in the line of a queue
//	  queue.looksAfter (the line's driver)   asks the store, or ends waits that are in vain
//	    queue.fetch -> Store.Take            one Ask for all who wait: what comes back, copies, a block besides
//	    queue.share                          those who wait go, in order; the rest is a block of the lease
//
// What keeps the parts of a limit together while the store is away:
//
//	Fleet.Run -> Group.beats -> Store.Beat   the process says that it lives, and what it wants
//	  Members (in the store)                 who holds which part, and what is out
//	  standing (in the process)              when it may use its part, and when no more
//	  own (of each lease)                    what of the part is there, and what is owed
//
// Files are named for what is in them. Stores decide by the arithmetic of Ask, Cell, Members and Supply, or by the same in
// a script of theirs; package storetest compares the two.
package fleet

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/memberfile"
)

// Options are how a process takes part in a fleet. The zero Options are
// those of a program in real time with a store nearby. Processes of one fleet should have the same, but need not: what
// is shared stays exact.
type Options struct {
	Clock clock.Clock // nil means the system's

	// Client tells this process from the others, in pauses and on status pages; "" means at random. Two processes, or
	// two runs of one, may have the same name: parts are held under a name of each run.
	Client string

	// Lease is how long a block may be spent after it was taken; 0 means 250ms, and
	// longer for limits by the minute; below 0 every decision asks the store.
	Lease time.Duration
	// Guard is how late an answer of the store may be used if nothing is leased; 0
	// means 10ms. Limits are held back by so much. It becomes longer by itself where answers take longer.
	Guard time.Duration

	// Freezes says that this process may be frozen together with its monotonic clock, as a
	// Lambda function is between calls: what was granted then ends as soon as the clock
	// on the wall says so, too. It costs a decision another look at a clock. It is on
	// where the environment has AWS_LAMBDA_FUNCTION_NAME.
	Freezes bool

	// Timeout is how long the answer to an ask is waited for at least, whatever the patience of
	// those who wait; 0 means 100ms. It is three times as long as answers usually take, and 5s at most.
	Timeout time.Duration
	Queue   int // how many calls may wait for the same limits and keys; 0 means 10,000

	// While the store is away the process goes on with the part of each limit that the
	// store has granted to it. Outage is how long the store keeps a part for a process that is
	// silent, 0 meaning 10s; Without is what the process does after that. Silence is after how
	// long without an answer the part is used; 0 means 1s. It is longer where answers are slow,
	// and in a large fleet.
	Outage  time.Duration
	Without Without
	Silence time.Duration

	// Members is a directory on a file system of this machine, in which processes with the same store find out which of
	// them have died (flock). The store then releases the part of a dead process at once, not after Outage. "" means
	// $STATE_DIRECTORY, or else the directory for temporary files, if the store is Named; "-" means none.
	Members string

	Events Events
	Rand   *rand.Rand // for simulators, whose runs must repeat; nil means the runtime's
}

// A Fleet lets the limits of this process be shared with others through a Store. It
// takes blocks of units at once and spends them locally, asks once for everyone who
// waits for the same, keeps those who wait in order, and goes on by itself while the
// store is away. Start must be called once, or Run: without, nothing is given back by itself, no part is held,
// and nobody hears that the store is away. Close gives everything back. It is safe for concurrent use; New makes one.
type Fleet struct {
	store  Store
	o      Options // with the defaults filled in
	clock  clock.Clock
	seed   uint64 // of the IDs of asks: random, so that no other process has the same
	ids    atomic.Uint64
	member string       // this run of this process, among the members of its groups
	beater *clock.Waker // of who beats
	alive  atomic.Int64 // clients that are known, this one included
	offset atomic.Int64 // the store's clock less ours

	events  sync.Mutex // held while it is looked whether the store is away, and not while it is told
	untold  []FallbackEvent
	telling bool
	away    atomic.Int64 // the instant since which the store is away; 0 if it is not
	past    atomic.Bool  // for longer than it keeps parts
	spent   atomic.Int64 // units let go meanwhile

	tell  atomic.Int64 // when what came back has to be told at the latest; 0 if there is nothing
	waker *clock.Waker // of Run

	mu     sync.Mutex
	groups map[string]*Group
	ctx    context.Context // of what Start began; nil before it and after Close
	stop   context.CancelFunc
	closed bool
	once   sync.Once // of Close
	gone   error     // what it returned
	wg     sync.WaitGroup
	extras map[*extra]struct{}
	life   *memberfile.File // locked as long as this process is a member; nil if there is none
}

// An extra is something that goes on as long as the fleet does.
type extra struct {
	run  func(context.Context)
	stop context.CancelFunc // nil until it runs
}

// These are Options.Timeout and Options.Queue that are 0.
const (
	defaultTimeout = 100 * time.Millisecond
	defaultQueue   = 10_000
)

// New makes this process a member of the fleet that shares the store.
func New(s Store, o Options) *Fleet {
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Guard = cmp.Or(o.Guard, defaultGuard)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	o.Outage = cmp.Or(o.Outage, DefaultOutage)
	o.Silence = min(cmp.Or(o.Silence, silenceUsual), o.Outage/4)
	o.Freezes = o.Freezes || os.Getenv("AWS_LAMBDA_FUNCTION_NAME") != ""
	f := &Fleet{store: s, o: o, clock: o.Clock, groups: make(map[string]*Group)}
	if f.clock == nil {
		f.clock = clock.System
	}
	var b [16]byte
	_, _ = crand.Read(b[:]) // it never fails
	if o.Rand != nil {
		binary.LittleEndian.PutUint64(b[:], o.Rand.Uint64())
		binary.LittleEndian.PutUint64(b[8:], o.Rand.Uint64())
	}
	f.seed = binary.LittleEndian.Uint64(b[:])
	if f.o.Client == "" {
		f.o.Client = hex.EncodeToString(b[8:])
	}
	f.member = f.o.Client + "/" + hex.EncodeToString(b[:8])
	f.beater = clock.NewWaker(f.clock)
	f.alive.Store(1)
	f.waker = clock.NewWaker(f.clock)
	return f
}

// Client is the name of this process in the fleet.
func (f *Fleet) Client() string { return f.o.Client }

// Store is the store that the fleet shares.
func (f *Fleet) Store() Store { return f.store }

// Away reports whether the store is away, so that limits are held locally.
func (f *Fleet) Away() bool { return f.away.Load() != 0 }

// Alone is how long the store has been away, and how many units were let go since; 0
// if it is there.
func (f *Fleet) Alone() (since time.Duration, spent int64) {
	if at := time.Duration(f.away.Load()); at != 0 {
		return max(1, f.clock.Now()-at), max(0, f.spent.Load())
	}
	return 0, 0
}

// Why is why the store is away, or was never reached, as the latest attempt ended; nil if it is there.
func (f *Fleet) Why() error {
	_, _, err := f.look(f.clock.Now())
	return err
}

// Held is how many units this process has leased and not spent, by group.
func (f *Fleet) Held() map[string]int64 {
	now, held := f.clock.Now(), make(map[string]int64)
	for _, g := range f.all() {
		g.mu.Lock()
		held[g.name] = 0
		for p := range g.active {
			held[g.name] += p.held(now)
		}
		g.mu.Unlock()
	}
	return held
}

// Alive is how many instances are known.
func (f *Fleet) Alive() int { return int(f.alive.Load()) }

// Group is the group of the name: the limits of one upstream.
func (f *Fleet) Group(name string) *Group {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[name]
	if g == nil {
		g = f.newGroup(now, name)
		f.groups[name] = g
		f.beater.Wake()
	}
	return g
}

// A Group is the limits of one upstream as this process shares them.
//
// Locks are taken in the order of a queue's line, queue.mu, Group.own, lease.mu, Group.mu, Fleet.mu. Group.mu
// and Fleet.mu are held for a look at their maps only: nothing is called meanwhile that
// takes another lock, waits, or leaves the package.
type Group struct {
	fleet    *Fleet
	name     string
	lane     uint64 // of what is told without an ask
	debtLane uint64

	came    atomic.Uint64 // calls that came to any of the queues
	lone    atomic.Int64  // the instant after which calls are served without the store, if it does not answer before
	failing atomic.Bool   // the latest exchange failed
	crowded atomic.Int64  // the instant up to which others return to the store as this process does; see returned
	spread  atomic.Int64  // how long lies between the requests of a queue until then, in nanoseconds
	guard   atomic.Int64  // how old an answer may be of limits of which nothing is leased, in nanoseconds; see guard
	warm    atomic.Bool   // the store has said with its latest answer that it knows what was used

	// own guards what the process uses without the store, and how it stands: also what is so of each of its leases.
	own      sync.Mutex
	standing standing
	beating  beating
	used     bool                // the part was used since the store was heard, as the file of this process says
	spenders map[*lease]struct{} // of rolling limits

	reach reach // how far the store is; guarded by own

	mu      sync.Mutex
	sources map[string]*source  // the latest of each limit, by its name
	queues  map[string]*queue   // by the leases that its calls lack
	active  map[*lease]struct{} // leases that may have something to give back
}

// newGroup is a group of which the store has said nothing yet.
func (f *Fleet) newGroup(now time.Duration, name string) *Group {
	g := &Group{
		fleet: f, name: name, lane: f.nextID(), debtLane: f.nextID(),
		sources: make(map[string]*source), queues: make(map[string]*queue), active: make(map[*lease]struct{}), spenders: make(map[*lease]struct{}),
	}
	g.standing = standing{
		rules:   parting{silence: f.o.Silence, life: f.o.Outage, without: f.o.Without, none: f.o.Freezes},
		silence: f.o.Silence, began: now,
	}
	if _, ok := f.store.(Clocked); ok {
		g.standing.rules.overlap = Overlap
	}
	if c, ok := f.clock.(interface{ Asleep() time.Duration }); ok {
		g.standing.asleep = c.Asleep
	}
	g.beating.need, g.beating.hold, g.beating.usedAt = newLately(), newLately(), now
	g.beating.guard.longest = newLately()
	g.guard.Store(int64(f.o.Guard))
	g.lone.Store(int64(g.standing.from()))
	return g
}

// nextID is an ID for an ask or a lane, never 0 and never the same twice in a process; that two processes have
// the same is as likely as that two random numbers of 64 bits meet.
func (f *Fleet) nextID() uint64 {
	for {
		// The multiplier spreads consecutive numbers over all bits; it is odd, so no two meet.
		if id := (f.seed + f.ids.Add(1)) * 0x9e3779b97f4a7c15; id != 0 {
			return id
		}
	}
}

// storeTime is the store's clock at an instant, as far as it is known.
func (f *Fleet) storeTime(now time.Duration) time.Time {
	if off := f.offset.Load(); off != 0 {
		return time.Unix(0, off+int64(now))
	}
	return f.clock.Wall(now)
}

// heard notes the answer of the store to a call that was sent at the instant.
func (f *Fleet) heard(sent time.Duration, at time.Time) {
	f.offset.Store(at.UnixNano() - int64(sent))
}
