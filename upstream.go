package weir

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet/breakers"
	"github.com/seed1158cd35/weir/fleet/pauses"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Options are what an upstream needs in addition to its policy. The zero Options use real time and have no observers.
type Options struct {
	Clock  Clock // nil means the system clock
	Events Events
	Gates  []Gate     // asked after breaker and limits
	Limits *LimitSet  // shares limits with other upstreams of the same name in this process; nil shares none
	Fleet  Fleet      // shares limits with other processes; nil shares none
	Rand   *rand.Rand // for simulators, whose runs must be repeatable; nil means the runtime's

	Deliverer Deliverer // accepts calls to be made later; nil means that Deliver fails
}

// A Fleet shares limits, breakers and pauses between processes. It is a *fleet.Fleet. A nil Fleet shares nothing. A
// Fleet must be safe for concurrent use.
type Fleet interface {
	breakers.Fleet
	pauses.Fleet
	Home(upstream string) limit.Home // creates the limiters of the shared limits
}

// An Upstream is an API that is called under a policy. It is safe for concurrent use, and all callers of the API
// share it. Make one with New: the zero Upstream is not usable.
//
// A decision takes no lock of the Upstream. Locks that are taken together are taken in this order: setting,
// pausing.obeying, then those of the packages line and limit. No other lock is taken while that of sleepers is held,
// and no lock is held while a call waits.
type Upstream struct {
	name     string
	options  Options
	clock    clock.Clock
	live     atomic.Pointer[live]
	latest   latest       // instant of a recent decision
	counts   *Counts      // nil if no listener needs them
	lines    *line.Lines  // queues of calls that wait for limits
	sleepers sleepers     // calls that wait elsewhere
	resting  atomic.Int64 // calls in queues of pauses
	pauses   pausing
	setting  sync.Mutex // serializes Set and Close
	leave    func()     // removes the breakers from the fleet; nil if they are not shared
}

// New returns an upstream, or all mistakes of its policy as joined FieldErrors. Processes of a fleet share an
// upstream by its name, and a limit of it by the limit's name. Without a fleet any name will do.
func New(name string, p Policy, o Options) (*Upstream, error) {
	if v := reflect.ValueOf(o.Fleet); v.Kind() == reflect.Pointer && v.IsNil() {
		o.Fleet = nil // a typed nil pointer: nothing is shared
	}
	u := &Upstream{name: name, options: o, clock: o.Clock}
	if u.clock == nil {
		u.clock = clock.System
	}
	u.sleepers.clock, u.pauses.u = u.clock, u
	u.lines = line.NewLines(u.clock, Fair{}.lines())
	if o.Events.Counts != nil || o.Events.Violated != nil {
		u.counts = &Counts{upstream: name, known: make(map[string]*tallies)}
	}
	if err := u.Set(p); err != nil {
		return nil, err
	}
	tell(o.Events.Counts, u.counts)
	if o.Fleet != nil {
		u.pauses.join()
	}
	return u, nil
}

// Name returns the upstream's name.
func (u *Upstream) Name() string { return u.name }

// Drain ends every wait immediately, before the program exits. Waiting calls are refused as ShuttingDown. Calls whose
// attempt failed return its response instead of retrying. The same applies to later calls. Attempts in flight, and
// calls that need not wait, continue.
func (u *Upstream) Drain() {
	u.sleepers.wakeAll()
	u.lines.End(errOpened)
	if s := u.live.Load().shadow; s != nil {
		s.u.Drain()
	}
	for _, f := range u.live.Load().flights() {
		f.line.End(errOpened)
	}
}

// Policy returns the policy in force, with its defaults.
func (u *Upstream) Policy() Policy { return u.live.Load().policy }

// Set puts another policy in force. A limit keeps its state if the new policy has one of the same name, scope and
// unit. Breakers keep theirs unless their scope changes. Calls in progress continue. New limits start empty, because
// their previous usage is unknown. If the policy has mistakes, Set returns them and changes nothing.
func (u *Upstream) Set(p Policy) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("upstream %s: %w", u.name, err)
	}
	u.setting.Lock()
	defer u.setting.Unlock()
	old := u.live.Load()
	if old == nil {
		old = &live{}
	}
	next := &live{u: u, policy: p.WithDefaults(), slotWait: p.slotWait()}
	if err := next.build(old); err != nil {
		return fmt.Errorf("upstream %s: %w", u.name, err)
	}
	u.live.Store(next)
	u.sleepers.wakeMoved(next)
	u.lines.Fail(errMoved, func(a line.Asker) bool { return a.(*waiter).charged.moved(next) })
	u.lines.Set(next.policy.Fair.lines())
	u.lines.Kick()
	u.sleepers.wakeLooking()
	flights := next.flights()
	for _, f := range flights {
		f.line.Kick()
	}
	for _, f := range old.flights() {
		if !slices.Contains(flights, f) {
			f.dissolve()
		}
	}
	return nil
}

// opened wakes the calls that wait and whose breaker has opened.
func (u *Upstream) opened() {
	now := u.clock.Now()
	u.sleepers.wakeOpened(now)
	u.lines.Fail(errOpened, func(a line.Asker) bool { return isOpen(now, a.(*waiter).breaker) })
	if v := u.live.Load(); v != nil {
		for _, f := range v.flights() {
			f.fail(now)
		}
	}
}

// shares reports whether the fleet shares a limit.
func (u *Upstream) shares(l *limit.Limit) bool { return u.options.Fleet != nil && l.Shares() }

// A latest holds the instant of a recent decision.
type latest struct{ at atomic.Int64 }

// recent is how old that instant may be and still be used as the present one.
const recent = time.Millisecond

// saw records the instant of a decision.
func (l *latest) saw(now time.Duration) {
	if int64(now)-l.at.Load() > int64(recent) {
		l.at.Store(int64(now))
	}
}

// since returns an instant not before sent and, while there is traffic, within a millisecond of the present. It saves
// reading the clock, a fifth of the cost of a decision. It is only for successes, which count in windows of seconds.
func (l *latest) since(sent time.Duration) time.Duration {
	return max(sent, time.Duration(l.at.Load()))
}

// longestKey is the length up to which a key is kept unchanged.
const longestKey = 256

// boundedKey shortens long keys, so that keys chosen by clients use bounded memory.
func boundedKey(key string) string { return pause.Bounded(key) }

// A Clock is the source of time of an upstream; see package clock.
type Clock = clock.Clock

// later returns now+d, or Never on overflow.
func later(now, d time.Duration) time.Duration {
	if d > bucket.Never-now {
		return bucket.Never
	}
	return now + d
}
