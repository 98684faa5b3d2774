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

// Options are what an upstream needs besides its policy. The zero Options are
// those of a program in real time that nobody watches.
type Options struct {
	Clock  Clock // nil means the system's
	Events Events
	Gates  []Gate     // asked after breaker and limits
	Limits *LimitSet  // shares the limits with other upstreams of this process that have the name; nil means that they are this one's own
	Fleet  Fleet      // shares the limits with other processes; nil means that they are this one's own
	Rand   *rand.Rand // for simulators, whose runs must repeat; nil means the runtime's

	Deliverer Deliverer // takes what may be delivered later; nil means that nothing can be
}

// A Fleet is what processes share limits, breakers and pauses through: a *fleet.Fleet. A nil one is none.
type Fleet interface {
	breakers.Fleet
	pauses.Fleet
	Home(upstream string) limit.Home // where the limiters of its shared limits come from
}

// An Upstream is an API that is called, under a policy. It is safe for
// concurrent use and shared by everyone who calls that API. There is no zero Upstream: New makes one.
//
// A decision takes no lock of its own. Where others are taken together it is in this order: setting,
// pausing.obeying, then those of packages line and limit. While that of sleepers is held nothing else is
// locked, and none is held while a call waits.
type Upstream struct {
	name     string
	options  Options
	clock    clock.Clock
	live     atomic.Pointer[live]
	latest   latest       // instant of a recent decision
	counts   *Counts      // nil if nobody reads them
	lines    *line.Lines  // of those who wait for limits
	sleepers sleepers     // of those who sleep
	resting  atomic.Int64 // calls in lines of pauses
	pauses   pausing
	setting  sync.Mutex // one Set or Close at a time
	leave    func()     // takes the breakers out of the fleet; nil if they are in none
}

// New makes an upstream, or says everything that is wrong with its policy, as joined FieldErrors.
// Processes of a fleet share what has the same name in all of them: the upstream's, and under it
// that of a limit. Whoever shares nothing may choose any name.
func New(name string, p Policy, o Options) (*Upstream, error) {
	if v := reflect.ValueOf(o.Fleet); v.Kind() == reflect.Pointer && v.IsNil() {
		o.Fleet = nil // of a program whose limits are its own
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

// Name is the upstream's name.
func (u *Upstream) Name() string { return u.name }

// Drain ends every wait at once, for the program is about to end: calls that wait are refused
// as ShuttingDown, those whose attempt failed get its answer in place of another one, and so
// it is for all that come. Attempts that are under way, and calls that need not wait, go on.
func (u *Upstream) Drain() {
	u.sleepers.wakeAll()
	u.lines.End(errOpened)
	for _, f := range u.live.Load().flights() {
		f.line.End(errOpened)
	}
}

// Policy is the policy in force, its defaults filled in.
func (u *Upstream) Policy() Policy { return u.live.Load().policy }

// Set puts another policy in force. Limits that the new policy still has, by
// name, scope and unit, keep their state, and so do breakers unless their scope
// changes: nothing is handed out or lost, and calls under way are not disturbed.
// Limits that come new start empty: nobody knows how much has gone that they
// would have counted. A policy with mistakes changes nothing.
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

// opened tells all who wait for a breaker's calls that it is open.
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

// shares reports whether a fleet shares a limit.
func (u *Upstream) shares(l *limit.Limit) bool { return u.options.Fleet != nil && l.Shares() }

// A latest is the instant of a recent decision.
type latest struct{ at atomic.Int64 }

// recent is how old that instant may be and still pass for the present one.
const recent = time.Millisecond

// saw notes the instant of a decision.
func (l *latest) saw(now time.Duration) {
	if int64(now)-l.at.Load() > int64(recent) {
		l.at.Store(int64(now))
	}
}

// since is an instant not before sent and, while there is traffic, within a
// millisecond of the present one. It saves the clock read, a fifth of a whole
// decision, for successes: all they do is to be counted in windows of seconds.
func (l *latest) since(sent time.Duration) time.Duration {
	return max(sent, time.Duration(l.at.Load()))
}

// longestKey is the longest key that is kept as it is.
const longestKey = 256

// boundedKey keeps keys that a caller chose from taking up memory without bound.
func boundedKey(key string) string { return pause.Bounded(key) }

// A Clock is the time that an upstream lives in; see package clock.
type Clock = clock.Clock

// later is now+d, or Never if there is no such instant.
func later(now, d time.Duration) time.Duration {
	if d > bucket.Never-now {
		return bucket.Never
	}
	return now + d
}
