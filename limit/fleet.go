package limit

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// FleetOptions are how a process takes part in a fleet. The zero FleetOptions are
// those of a program in real time with a store nearby.
type FleetOptions struct {
	Clock  clock.Clock // nil means the system's
	Client string      // tells this process from the others; "" means at random

	// Lease is how long a block may be spent after it was taken; 0 means 250ms, and
	// longer for limits by the minute; below 0 every decision asks the store.
	Lease time.Duration
	// Guard is how late an answer of the store may be used if nothing is leased; 0
	// means 10ms. Limits are held back by so much.
	Guard time.Duration

	Timeout time.Duration // for one call to the store; 0 means 100ms
	Queue   int           // how many calls may wait for the same limits and keys; 0 means 10,000

	// While the store is away the process goes on by itself: for Coast at its own
	// last rate (0 means 60s), then at Share of each limit (0 means one part of as
	// many as there are known instances).
	Coast time.Duration
	Share float64

	Events FleetEvents
	Rand   *rand.Rand // for simulators, whose runs must repeat; nil means the runtime's
}

// FleetEvents are called as things happen, one after the other for each subject.
// They must not block. Nil means unheard.
type FleetEvents struct {
	Called   func(StoreCall)
	Fallback func(FallbackEvent)
}

// TeeFleet is the events that tell all.
func TeeFleet(all ...FleetEvents) FleetEvents {
	return FleetEvents{
		Called: func(c StoreCall) {
			for _, e := range all {
				if e.Called != nil {
					e.Called(c)
				}
			}
		},
		Fallback: func(f FallbackEvent) {
			for _, e := range all {
				if e.Fallback != nil {
					e.Fallback(f)
				}
			}
		},
	}
}

// A StoreCall is one call to the store, made for everyone who waited for it.
type StoreCall struct {
	Group   string
	Limits  []LimitCall // that were asked for; to be read during the event only
	Calls   int         // of the program, that it was made for
	Granted int64       // of these
	Back    int64       // units that were given back, over all limits
	Took    time.Duration
	Again   bool // a repeat
	Err     error
}

// A LimitCall is what a call to the store brought of one limit.
type LimitCall struct {
	Limit  *Limit
	Units  int64 // granted for the calls
	Leased int64 // and besides
}

// A FallbackEvent says that the store is away, or back.
type FallbackEvent struct {
	Away  bool
	Err   error         // why, if it is away
	For   time.Duration // how long it was away
	Spent int64         // units that were let go meanwhile, over all limits
}

// A Fleet lets the limits of this process be shared with others through a Store. It
// takes blocks of units at once and spends them locally, asks once for everyone who
// waits for the same, keeps those who wait in order, and goes on by itself while the
// store is away. Start must be called once, or Run.
type Fleet struct {
	store  Store
	o      FleetOptions
	clock  clock.Clock
	seed   uint64
	ids    atomic.Uint64
	alive  atomic.Int64 // clients that are known, this one included
	offset atomic.Int64 // the store's clock less ours

	failed atomic.Int32 // calls in a row
	away   atomic.Int64 // the instant since which the store is away; 0 if it is not
	spent  atomic.Int64 // units let go meanwhile

	mu     sync.Mutex
	groups map[string]*Group
	ctx    context.Context // of what Start began; nil before it and after Close
	stop   context.CancelFunc
	closed bool
	wg     sync.WaitGroup
	extras map[*extra]struct{}
}

// An extra is something that goes on as long as the fleet does.
type extra struct {
	run  func(context.Context)
	stop context.CancelFunc // nil until it runs
}

const (
	defaultTimeout = 100 * time.Millisecond
	defaultQueue   = 10_000
	defaultCoast   = time.Minute
	awayAfter      = 3 // failed calls in a row
)

// NewFleet makes this process a member of the fleet that shares the store.
func NewFleet(s Store, o FleetOptions) *Fleet {
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Guard = cmp.Or(o.Guard, defaultGuard)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	o.Coast = cmp.Or(o.Coast, defaultCoast)
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
	f.alive.Store(1)
	return f
}

// Client is the name of this process in the fleet.
func (f *Fleet) Client() string { return f.o.Client }

// Store is the store that the fleet shares.
func (f *Fleet) Store() Store { return f.store }

// Away reports whether the store is away, so that limits are held locally.
func (f *Fleet) Away() bool { return f.away.Load() != 0 }

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
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[name]
	if g == nil {
		g = &Group{fleet: f, name: name, lane: f.nextID(), queues: make(map[queueKey]*queue), active: make(map[*pool]struct{})}
		f.groups[name] = g
	}
	return g
}

// A Group is the limits of one upstream as this process shares them.
type Group struct {
	fleet *Fleet
	name  string
	lane  uint64 // of what is told without an ask

	mu     sync.Mutex
	queues map[queueKey]*queue
	active map[*pool]struct{} // pools that may have something to give back
}

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

// fails notes a call that failed. After some in a row the store is away.
func (f *Fleet) fails(now time.Duration, err error) {
	if f.failed.Add(1) < awayAfter || !f.away.CompareAndSwap(0, max(1, int64(now))) {
		return
	}
	f.spent.Store(0)
	if f.o.Events.Fallback != nil {
		f.o.Events.Fallback(FallbackEvent{Away: true, Err: err})
	}
}

// succeeds notes a call that came through.
func (f *Fleet) succeeds(now time.Duration) {
	if f.failed.Load() != 0 {
		f.failed.Store(0)
	}
	since := f.away.Load()
	if since == 0 || !f.away.CompareAndSwap(since, 0) {
		return
	}
	if f.o.Events.Fallback != nil {
		f.o.Events.Fallback(FallbackEvent{For: now - time.Duration(since), Spent: f.spent.Load()})
	}
}

// Start runs the fleet, and whatever attends it, until Close.
func (f *Fleet) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil || f.closed {
		return
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.wg.Go(func() { f.Run(f.ctx) })
	for x := range f.extras {
		f.start(x)
	}
}

func (f *Fleet) start(x *extra) {
	ctx, stop := context.WithCancel(f.ctx)
	x.stop = stop
	f.wg.Go(func() { x.run(ctx) })
}

// Attend lets run go on from Start until Close, or until the function that it returns
// is called.
func (f *Fleet) Attend(run func(context.Context)) (leave func()) {
	x := &extra{run: run}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.extras == nil {
		f.extras = make(map[*extra]struct{})
	}
	f.extras[x] = struct{}{}
	if f.ctx != nil && !f.closed {
		f.start(x)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.extras, x)
		if x.stop != nil {
			x.stop()
		}
	}
}

// Close gives back what is leased and not spent, waiting at most as long as ctx, and
// ends what Start began. The store stays open.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	stop := f.stop
	f.mu.Unlock()
	if stop != nil {
		stop()
		f.wg.Wait()
	}
	return f.giveBack(ctx, true)
}

const (
	beatEvery  = 10 * time.Second
	beatKeep   = 25 * time.Second
	tick       = 250 * time.Millisecond
	knockFirst = 40 * time.Millisecond // between looks for a store that is away
	knockLast  = time.Second
	knockSoon  = 10 * time.Second // for so long it is looked for often
)

// Run says that this process is alive, gives back what is leased and idle, and looks
// for a store that is away, until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	beat := time.Duration(0)
	for {
		now := f.clock.Now()
		if now >= beat || f.Away() {
			beat = now + beatEvery
			f.beat(ctx)
		}
		if !f.Away() {
			_ = f.giveBack(ctx, false)
		}
		if f.clock.Sleep(ctx, f.pause(f.clock.Now())) != nil {
			return
		}
	}
}

// pause is how long Run sleeps; a fleet must not knock in step.
func (f *Fleet) pause(now time.Duration) time.Duration {
	d := tick
	if since := f.away.Load(); since != 0 {
		d = knockFirst
		if now-time.Duration(since) > knockSoon {
			d = knockLast
		}
	}
	return d/2 + f.within(d)
}

// within is a random time below d.
func (f *Fleet) within(d time.Duration) time.Duration {
	if f.o.Rand != nil {
		return time.Duration(f.o.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

func (f *Fleet) beat(ctx context.Context) {
	ctx, cancel := f.clock.WithTimeout(ctx, f.o.Timeout, context.DeadlineExceeded)
	defer cancel()
	for _, g := range f.all() {
		n, err := f.store.Beat(ctx, g.name, f.o.Client, beatKeep)
		now := f.clock.Now()
		if err != nil {
			f.fails(now, err)
			return
		}
		f.alive.Store(max(1, int64(n)))
		f.succeeds(now)
	}
}

func (f *Fleet) all() []*Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Group, 0, len(f.groups))
	for _, name := range slices.Sorted(maps.Keys(f.groups)) { // in the same order each time, for simulators
		all = append(all, f.groups[name])
	}
	return all
}

// giveBack tells the store of what came back and of debts that no call has taken
// along; of everything that is leased if all is set.
func (f *Fleet) giveBack(ctx context.Context, all bool) error {
	var errs []error
	for _, g := range f.all() {
		errs = append(errs, g.giveBack(ctx, all))
	}
	return errors.Join(errs...)
}

// isActive notes a pool that may have something to give back.
func (g *Group) isActive(p *pool) {
	g.mu.Lock()
	g.active[p] = struct{}{}
	g.mu.Unlock()
}

// idleAfter is how long nothing was asked for before what is held and pending is
// given back without waiting for the next ask.
const idleAfter = time.Second

func (g *Group) giveBack(ctx context.Context, all bool) error {
	now := g.fleet.clock.Now()
	g.mu.Lock()
	var idle []*pool
	for p := range g.active {
		if all || p.idle(now) {
			idle = append(idle, p)
			delete(g.active, p)
		}
	}
	for k, q := range g.queues {
		if q.unused(now) {
			delete(g.queues, k)
		}
	}
	g.mu.Unlock()
	for len(idle) > 0 {
		n := min(len(idle), backAtOnce)
		if err := g.tell(ctx, now, idle[:n], all); err != nil {
			return err
		}
		idle = idle[n:]
	}
	return nil
}

const backAtOnce = 64

// tell tells the store what the pools have to say.
func (g *Group) tell(ctx context.Context, now time.Duration, pools []*pool, all bool) error {
	a := Ask{Group: g.name, ID: g.fleet.nextID(), Lane: g.lane}
	for _, p := range pools {
		p.expire(now, all)
		p.resume(now)
		a.Settle = p.takePending(now, a.Settle)
		if p.held(now) > 0 {
			g.isActive(p)
		}
	}
	if len(a.Settle) == 0 {
		return nil
	}
	ctx, cancel := g.fleet.clock.WithTimeout(ctx, g.fleet.o.Timeout, context.DeadlineExceeded)
	defer cancel()
	err := g.fleet.store.Take(ctx, &a)
	if g.fleet.o.Events.Called != nil {
		e := StoreCall{Group: g.name, Took: g.fleet.clock.Now() - now, Err: err}
		for i := range a.Settle {
			e.Back += a.Settle[i].Back
		}
		g.fleet.o.Events.Called(e)
	}
	if err == nil {
		g.fleet.succeeds(g.fleet.clock.Now())
		return nil
	}
	keepDebts(now, a.Settle, pools)
	g.fleet.fails(g.fleet.clock.Now(), err)
	return err
}

// idle reports whether nobody has asked for a while, or others have to be told to
// pause.
func (p *pool) idle(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now >= p.demand.at+idleAfter || p.untold.Load() != 0
}

// unused reports whether a queue can be forgotten.
func (q *queue) unused(now time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.led && q.n == 0 && now > q.used+beatEvery
}
