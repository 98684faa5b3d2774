package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet/breakers"
	"github.com/seed1158cd35/weir/fleet/pauses"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/retry"
)

// Options are what an upstream needs besides its policy. The zero Options are
// those of a program in real time that nobody watches.
type Options struct {
	Clock  Clock // nil means the system's
	Events Events
	Gates  []Gate     // asked after breaker and limits
	Fleet  Fleet      // shares the limits with other processes; nil means that they are this one's own
	Rand   *rand.Rand // for simulators, whose runs must repeat; nil means the runtime's
}

// A Fleet is what processes share limits, breakers and pauses through: a *fleet.Fleet. A nil one is none.
type Fleet interface {
	breakers.Fleet
	pauses.Fleet
	Home(upstream string) limit.Home // where the limiters of its shared limits come from
}

// An Upstream is an API that is called, under a policy. It is safe for
// concurrent use and shared by everyone who calls that API.
type Upstream struct {
	name    string
	options Options
	clock   clock.Clock
	live    atomic.Pointer[live]
	latest  latest      // instant of a recent decision
	counts  *Counts     // nil if nobody reads them
	lines   *line.Lines // of those who wait for limits
	bell    bell
	pauses  pause.Book
	records *pauses.Pauses // shares them; nil if there is no fleet
	obeying sync.Mutex     // see obey
	setting sync.Mutex     // one Set at a time
	drains  atomic.Bool    // nobody is to wait any more
	leave   func()         // takes the breakers out of the fleet; nil if they are in none
	part    func()         // takes the pauses out of the fleet; nil likewise
}

// live is a policy in force, with the state that belongs to it.
type live struct {
	u          *Upstream
	policy     Policy
	plans      map[string]*plan
	other      *plan         // for operations that nobody declared
	named      named         // theirs, by name
	flight     *flight       // of all operations together; nil if each has its own, or none
	slotWait   time.Duration // how long a call may wait for a slot of it
	registries []*limit.Registry
	breaker    *breaker.Breaker // nil if there is one per key
	breakers   *breaker.Group   // by operation, or by the values of a scope
	purse      retry.Purse
	retries    *limit.Registry // of all processes together; nil if they have no bound
}

// New makes an upstream, or says everything that is wrong with its policy.
func New(name string, p Policy, o Options) (*Upstream, error) {
	if v := reflect.ValueOf(o.Fleet); v.Kind() == reflect.Pointer && v.IsNil() {
		o.Fleet = nil // of a program whose limits are its own
	}
	u := &Upstream{name: name, options: o, clock: o.Clock}
	if u.clock == nil {
		u.clock = clock.System
	}
	u.lines = line.NewLines(u.clock, Fair{}.lines())
	if o.Events.Counts != nil || o.Events.Violated != nil {
		u.counts = &Counts{upstream: name, known: make(map[string]*tallies)}
	}
	if err := u.Set(p); err != nil {
		return nil, err
	}
	tell(o.Events.Counts, u.counts)
	if o.Fleet != nil {
		u.part = u.joinPauses()
	}
	return u, nil
}

// Name is the upstream's name.
func (u *Upstream) Name() string { return u.name }

// Drain ends every wait at once, for the program is about to end: calls that wait are refused
// as ShuttingDown, those whose attempt failed get its answer in place of another one, and so
// it is for all that come. Attempts that are under way, and calls that need not wait, go on.
func (u *Upstream) Drain() {
	u.drains.Store(true)
	u.bell.toll()
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
	if err := u.build(next, old); err != nil {
		return fmt.Errorf("upstream %s: %w", u.name, err)
	}
	u.live.Store(next)
	u.bell.move(next)
	u.lines.Fail(errMoved, func(a line.Asker) bool { return a.(*stander).charged.moved(next) })
	u.lines.Set(next.policy.Fair.lines())
	u.lines.Kick()
	u.bell.lift()
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

func (u *Upstream) build(next, old *live) error {
	now := u.clock.Now()
	gone := old.loses(next.policy.Limits, u.shares)
	for _, l := range next.policy.Limits {
		r, err := u.registry(now, old, l, gone)
		if err != nil {
			return err
		}
		next.registries = append(next.registries, r)
	}
	limit.Join(next.registries)
	if err := next.newPurse(old); err != nil {
		return err
	}
	if err := u.newRetries(now, next, old); err != nil {
		return err
	}
	u.newBreaker(now, next, old)
	next.newPlans(now, old)
	return nil
}

// registry is the registry of a limit: the old one if there is one by the name,
// and an empty one if it may be one of those that are gone.
func (u *Upstream) registry(now time.Duration, v *live, l limit.Limit, gone bool) (*limit.Registry, error) {
	shares := u.shares(&l)
	for _, r := range v.registries {
		old := r.Limit()
		if !same(old, &l) || r.Shared() != shares {
			continue
		}
		if reflect.DeepEqual(*old, l) {
			return r, nil
		}
		return r, r.Set(now, l)
	}
	switch {
	case shares && gone:
		return limit.NewSharedEmpty(now, l, u.options.Fleet.Home(u.name))
	case shares:
		return limit.NewShared(now, l, u.options.Fleet.Home(u.name))
	case gone:
		return limit.NewEmpty(now, l, limit.WithWall(u.clock))
	}
	return limit.NewRegistry(now, l, limit.WithWall(u.clock))
}

// shares reports whether a fleet shares a limit.
func (u *Upstream) shares(l *limit.Limit) bool { return u.options.Fleet != nil && l.Shares() }

// same reports whether a limit of a new policy goes on with an old one's state.
func same(old, l *limit.Limit) bool {
	return old.Name == l.Name && old.Scope == l.Scope && old.UnitName() == l.UnitName()
}

// loses reports whether a limit in force has no place among the new ones. Then any
// of those that are new may be the same limit under another name, scope or unit, or shared
// where it was not.
func (v *live) loses(limits []limit.Limit, shares func(*limit.Limit) bool) bool {
	for _, r := range v.registries {
		if !slices.ContainsFunc(limits, func(l limit.Limit) bool { return same(r.Limit(), &l) && r.Shared() == shares(&l) }) {
			return true
		}
	}
	return false
}

func (v *live) newPurse(old *live) (err error) {
	p, q := &v.policy, &old.policy
	if old.purse != nil && p.Budget == q.Budget && reflect.DeepEqual(p.Quota, q.Quota) {
		v.purse = old.purse
		return nil
	}
	if p.Quota != nil {
		v.purse, err = retry.NewQuota(*p.Quota)
	} else {
		v.purse, err = retry.NewBudget(p.Budget)
	}
	return err
}

// newRetries makes the limit that the retries of all processes are charged to. They come
// in spells, so without a burst of its own it lets the whole amount go at any time, and no
// more in any period.
func (u *Upstream) newRetries(now time.Duration, v, old *live) error {
	all := v.policy.Budget.All
	if all == (bucket.Rate{}) {
		return nil
	}
	l := limit.Limit{Name: "retries", Unit: "retries", Rate: all}
	if all.Burst == 0 {
		l.Shape = limit.Rolling
	}
	if v.retries = old.retries; v.retries != nil {
		return v.retries.Set(now, l)
	}
	r, err := u.registry(now, &live{}, l, false)
	v.retries = r
	return err
}

// mayRetry takes a retry from what all processes may make together. Nobody waits
// for one.
func (r *Run) mayRetry() bool {
	all := r.live.retries
	if all == nil {
		return true
	}
	var p limit.Permit
	p.Add(limit.Charge{Registry: all, Cost: 1})
	v := p.Take(r.now, 0)
	for v.Ask {
		v, _ = p.Fetch(context.Background(), r.now, r.now, r.call.Priority) // a context that does not end
		if !v.OK {
			return false
		}
		v = p.Take(r.now, 0)
	}
	return v.OK
}

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
