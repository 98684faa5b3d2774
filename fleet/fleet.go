// Package fleet shares limits among many processes. A Store records the units granted of each limit and the
// processes that share it. A Fleet is the client in one process. It leases blocks of units and spends them
// locally. It makes one store request for all callers that wait for the same limits. Each process holds a part
// of each limit: a fraction that the store reserves for it. It spends its parts while the store is unavailable.
// Groups of a Fleet make the limiters of package limit. Package weir makes the calls.
//
// How a call gets units that it does not have:
//
//	limit.Charges.Take -> lease.Take          from a block that is held: no lock, no wait
//	limit.Charges.Fetch -> Group.Fetch        no block has enough: the call waits in the line of a queue
//	  queue.looksAfter (the line's driver)   asks the store, or ends waits that cannot succeed
//	    queue.fetch -> Store.Take            one Ask for all waiting calls: returns, copies of the call, an additional block
//	    queue.share                          waiting calls proceed in order; the rest becomes a block of the lease
//
// How the parts of a limit stay within it while the store is unavailable:
//
//	Fleet.Run -> Group.beats -> Store.Beat   a heartbeat: the process is alive and reports its demand
//	  Members (in the store)                 which process holds which part, and which parts are out: may be in use
//	  standing (in the process)              from when until when it may use its part
//	  own (of each lease)                    the units available from the part, and the debts
//
// Stores decide by the arithmetic of Ask, Cell, Members and Supply, or by a script that computes the same.
// Package storetest compares the two.
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

// Options configure a process of a fleet. The zero Options suit a program in real time with a nearby store.
// Processes of one fleet should use the same options. If they differ, the limits are still exact.
type Options struct {
	Clock clock.Clock // nil means the system's clock

	// Client names this process in pauses and on status pages; "" means a random name. Two processes, or two
	// runs of one process, may use the same name: parts are held under a name that is unique to each run.
	Client string

	// Lease is how long a block may be spent after it was taken. 0 means 250ms, and more for limits per minute
	// or longer. If it is negative, every decision asks the store.
	Lease time.Duration
	// Guard is how old a response of the store may be when its grant is used, for limits that are not leased. 0
	// means 10ms. The store withholds rate x Guard of such limits. Guard grows automatically if responses take
	// longer.
	Guard time.Duration

	// Freezes reports that this process may be frozen together with its monotonic clock, as a Lambda function
	// is between calls. Grants then also expire by the wall clock, which costs each decision a second clock
	// reading. It is always on if the environment contains AWS_LAMBDA_FUNCTION_NAME.
	Freezes bool

	// Timeout is the minimum time to wait for a response of the store, even if the callers' deadlines are
	// earlier. 0 means 100ms. The timeout in use is three times the usual response time, if that is longer, and
	// at most 5s.
	Timeout time.Duration
	Queue   int // the number of calls that may wait for the same limits and keys; 0 means 10,000

	// While the store is unavailable, the process spends the part of each limit that the store has granted to
	// it. Outage is how long the store reserves the part of a silent process; 0 means 10s. Without is what the
	// process does after that. Silence is how long the process waits for a response before it uses its part; 0
	// means 1s. Larger values than a quarter of Outage are reduced to that. Silence grows if responses are
	// slow, and in a large fleet.
	Outage  time.Duration
	Without Without
	Silence time.Duration

	// Members is a local directory in which processes with the same store detect that others have died (flock).
	// The store then releases the part of a dead process immediately, not after Outage. "" means
	// $STATE_DIRECTORY, or else the directory for temporary files, if the store is Named. "-" means none.
	Members string

	Events Events
	Rand   *rand.Rand // for simulators, whose runs must repeat; nil means the runtime's generator
}

// A Fleet shares the limits of this process with other processes through a Store. It leases blocks of units,
// makes one request for all callers that wait for the same limits, keeps waiting callers in order, and serves
// calls from its parts while the store is unavailable.
//
// Call Start once, or Run. Without either, unused units are not returned, the process holds no part, and
// outages of the store are not detected. Close returns everything. A Fleet is safe for concurrent use. Create
// it with New.
type Fleet struct {
	store  Store
	o      Options // with defaults
	clock  clock.Clock
	seed   uint64 // of request IDs; random, so that no other process uses the same IDs
	ids    atomic.Uint64
	member string       // the name of this run of the process among the members of its groups
	beater *clock.Waker // wakes the heartbeat loop
	alive  atomic.Int64 // known clients, including this one
	offset atomic.Int64 // the store's clock minus the local clock

	events  sync.Mutex // held while the store's availability is checked, and released during callbacks
	untold  []FallbackEvent
	telling bool
	away    atomic.Int64 // when the outage of the store began; 0 if there is none
	past    atomic.Bool  // the outage is longer than the store reserves parts
	spent   atomic.Int64 // units spent during the outage

	tell  atomic.Int64 // the deadline to report returned units to the store; 0 if there are none
	waker *clock.Waker // wakes Run

	mu     sync.Mutex
	groups map[string]*Group
	ctx    context.Context // of the goroutines that Start began; nil before Start and after Close
	stop   context.CancelFunc
	closed bool
	once   sync.Once // of Close
	gone   error     // the result of Close
	wg     sync.WaitGroup
	extras map[*extra]struct{}
	life   *memberfile.File // locked while this process is a member; nil if there is no file
}

// An extra is a function that runs as long as the fleet does; see Attend.
type extra struct {
	run  func(context.Context)
	stop context.CancelFunc // nil until it runs
}

// Defaults of Options.Timeout and Options.Queue.
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

// Client returns the name of this process in the fleet.
func (f *Fleet) Client() string { return f.o.Client }

// Store returns the store that the fleet shares.
func (f *Fleet) Store() Store { return f.store }

// Away reports whether the store is unavailable, so that limits are enforced locally.
func (f *Fleet) Away() bool { return f.away.Load() != 0 }

// Alone returns how long the store has been unavailable, and how many units were spent since. Both are 0 if the
// store is available.
func (f *Fleet) Alone() (since time.Duration, spent int64) {
	if at := time.Duration(f.away.Load()); at != 0 {
		return max(1, f.clock.Now()-at), max(0, f.spent.Load())
	}
	return 0, 0
}

// Why returns the latest error of the store while it is unavailable or was never reached, and nil otherwise.
func (f *Fleet) Why() error {
	_, _, err := f.look(f.clock.Now())
	return err
}

// Failing returns the error of a group whose latest heartbeat failed, and nil if there is none. Unlike Why, it also
// reports failures before calls are served without the store.
func (f *Fleet) Failing() error {
	for _, g := range f.all() {
		g.own.Lock()
		err := g.beating.err
		g.own.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Held returns the number of units that this process has leased and not spent, by group.
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

// Alive returns the number of known processes.
func (f *Fleet) Alive() int { return int(f.alive.Load()) }

// Group returns the group with the name: the limits of one upstream. It creates the group if necessary.
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

// A Group is the limits of one upstream in this process. It is safe for concurrent use.
//
// Lock order: the line of a queue, queue.mu, Group.own, lease.mu, Group.mu, Fleet.mu. Group.mu and Fleet.mu are
// held only to read or change maps. Code under them takes no other lock, does not wait and does not leave the
// package.
type Group struct {
	fleet    *Fleet
	name     string
	debtLane uint64

	came    atomic.Uint64 // calls that arrived at any of the queues
	lone    atomic.Int64  // after this instant calls are served without the store, unless it responds before
	failing atomic.Bool   // the latest exchange failed
	crowded atomic.Int64  // until this instant other processes reconnect to the store as well; see returned
	spread  atomic.Int64  // the time between requests of a queue until then, in nanoseconds
	guard   atomic.Int64  // how old a response may be for limits that are not leased, in nanoseconds; see type guard
	warm    atomic.Bool   // in its latest response the store knew the previous usage

	// own guards everything that the process uses without the store, also in its leases.
	own      sync.Mutex
	standing standing
	beating  beating
	used     bool                // the part was used since the last response, as recorded in the member file
	spenders map[*lease]struct{} // leases of rolling limits

	reach reach // how slow the store is; guarded by own

	mu      sync.Mutex
	sources map[string]*source  // the latest source of each limit, by name
	queues  map[string]*queue   // by the leases that their calls lack
	active  map[*lease]struct{} // leases that may have something to return
	lanes   []uint64            // of settlements without claims; requests under way have others
	unsure  []*unsettled        // requests to repeat, the oldest first
}

// newGroup returns a group for which the store has not responded yet.
func (f *Fleet) newGroup(now time.Duration, name string) *Group {
	g := &Group{
		fleet: f, name: name, debtLane: f.nextID(),
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

// nextID returns an ID for a request or a lane. It is never 0 and never repeats in a process. IDs of two
// processes are equal only if two random 64-bit numbers are.
func (f *Fleet) nextID() uint64 {
	for {
		// The multiplier spreads consecutive numbers over all bits. It is odd, so no two products are equal.
		if id := (f.seed + f.ids.Add(1)) * 0x9e3779b97f4a7c15; id != 0 {
			return id
		}
	}
}

// storeTime returns the store's clock at an instant, as well as it is known.
func (f *Fleet) storeTime(now time.Duration) time.Time {
	if off := f.offset.Load(); off != 0 {
		return time.Unix(0, off+int64(now))
	}
	return f.clock.Wall(now)
}

// heard notes the clock in a response of the store to a request that was sent at the instant.
func (f *Fleet) heard(sent time.Duration, at time.Time) {
	f.offset.Store(at.UnixNano() - int64(sent))
}
