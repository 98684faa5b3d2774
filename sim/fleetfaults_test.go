package sim_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sim"
)

const forever = 1000 * time.Hour

// A faulty is a fleet whose processes crash, freeze and leave, and whose messages are late, lost and repeated. One
// goroutine runs at a time, so the same seed gives the same history.
type faulty struct {
	world    *sim.World
	store    fleet.Store
	limits   []limit.Limit // each call is charged to all of these
	maxWait  time.Duration
	options  fleet.Options // of each process, without its clock
	travels  time.Duration // average of a message, one way
	loss     float64       // share of messages that are lost
	twice    float64       // share of requests that arrive twice
	down     bool          // the store gets no messages
	script   *faultScript  // nil for random faults
	members  []*member
	used     []used
	audit    *audit
	out      func() int64   // the parts that the store counts as out; nil if unknown
	debts    []used         // usage beyond the reservation, when it was reported
	states   map[string]int // how often each state was reached
	problems []string       // what must not happen, other than usage over a limit
}

// used is units of a call that was allowed.
type used struct {
	at    time.Duration
	limit int
	key   string
	n     int64
	by    int // the process
}

// A member is one process.
type member struct {
	f        *faulty
	id       int
	clock    *lag
	fleet    *fleet.Fleet
	upstream *weir.Upstream
	end      context.CancelFunc // of its loops
	up, back bool               // requests, or responses, are lost
	dead     bool
	leaving  bool
	inFlight int
	messages int
	heard    time.Duration // when the latest response arrived
	ledger   *ledger

	thaw     time.Duration // until when it is frozen
	freezes  time.Duration // for how long it will be
	sleeps   bool          // its machine will be suspended: the clock does not count the time
	freezeIn int           // and after how many more readings of the clock
}

// A lag is a clock that is slightly fast or slow. It stops while its process is frozen.
type lag struct {
	*sim.Clock
	m     *member
	by    float64
	slept time.Duration // how long its machine was suspended
}

func (c *lag) of(d time.Duration) time.Duration {
	if d > time.Hour {
		return d
	}
	return time.Duration(float64(d)*c.by) + time.Microsecond
}

func (c *lag) local(at time.Duration) time.Duration {
	return time.Duration(float64(at-c.slept) / c.by)
}

func (c *lag) world(at time.Duration) time.Duration {
	return time.Duration(float64(at)*c.by) + c.slept
}

func (c *lag) Asleep() time.Duration { return c.slept }

// Now may freeze the process before or after the reading.
func (c *lag) Now() time.Duration {
	m, at := c.m, c.local(c.Clock.Now())
	if m.freezes == 0 {
		return at
	}
	if m.freezeIn--; m.freezeIn > 0 {
		return at
	}
	m.freeze()
	if c.m.f.world.Rand().IntN(2) == 0 {
		at = c.local(c.Clock.Now())
	}
	return at
}

func (c *lag) Sleep(ctx context.Context, d time.Duration) error {
	for until := c.local(c.Clock.Now()) + d; ; {
		err := c.Clock.Sleep(ctx, c.of(d))
		c.m.gate()
		if d = until - c.local(c.Clock.Now()); err != nil || d <= 0 {
			return err
		}
	}
}

// Go starts a goroutine of the process.
func (c *lag) Go(do func()) {
	c.Clock.Go(func() {
		c.m.gate()
		do()
	})
}

func (c *lag) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return c.Clock.WithTimeout(ctx, c.of(d), cause)
}

func (c *lag) Deadline(ctx context.Context) (time.Duration, bool) {
	at, ok := c.Clock.Deadline(ctx)
	return c.local(at), ok
}

func (c *lag) Wall(at time.Duration) time.Time { return c.Clock.Wall(c.world(at)) }

// freeze stops the process for a time. The goroutine that reads the clock continues first.
func (m *member) freeze() {
	m.f.reach("a process froze")
	d := m.freezes
	m.thaw, m.freezes = m.f.world.Now()+d, 0
	_ = m.f.world.Clock().Sleep(context.Background(), d)
	if m.sleeps {
		m.clock.slept += d
	}
}

// gate waits while the process is frozen, and forever if it has crashed.
func (m *member) gate() {
	if d := m.thaw - m.f.world.Now(); d > 0 {
		_ = m.f.world.Clock().Sleep(context.Background(), d+1)
	}
	if m.dead {
		_ = m.f.world.Clock().Sleep(context.Background(), forever)
	}
}

func newFaulty(seed uint64, limits ...limit.Limit) *faulty {
	w := sim.New(seed)
	store := fleet.NewMemory(func() time.Time { return w.Clock().Wall(w.Now()) })
	return &faulty{
		world: w, store: store, limits: limits, maxWait: 300 * time.Millisecond, travels: time.Millisecond, states: make(map[string]int), audit: newAudit(),
		options: fleet.Options{Members: "-", Outage: 5 * time.Second, Without: fleet.Without{Refuse: true}},
	}
}

// join starts a process whose clock runs at a speed.
func (f *faulty) join(t testing.TB, speed float64) *member {
	m := &member{f: f, id: len(f.members), ledger: newLedger()}
	m.clock = &lag{f.world.Clock(), m, speed, 0}
	o := f.options
	o.Clock, o.Rand = m.clock, f.world.Rand()
	m.fleet = fleet.New(distantStore{m}, o)
	u, err := weir.New("up", f.policy(), weir.Options{Clock: m.clock, Rand: f.world.Rand(), Fleet: m.fleet})
	if err != nil {
		t.Fatal(err)
	}
	m.upstream = u
	f.members = append(f.members, m)
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.clock.Go(func() { m.fleet.Run(ctx) })
	return m
}

func (f *faulty) policy() weir.Policy {
	return weir.Policy{Limits: slices.Clone(f.limits), MaxWait: f.maxWait}
}

// A work is what a caller does.
type work struct {
	key             string
	reserves, costs []int64 // of each limit
	lasts           time.Duration
	leaves          time.Duration // after which it does not wait any longer; 0 means never
	try             bool          // it does not wait
}

// call makes a call that reserves units, and returns some of them or uses more. retry is the stated wait if it was
// refused.
func (m *member) call(w work) (ok bool, retry time.Duration) {
	f := m.f
	if m.dead || m.leaving {
		return false, 0
	}
	m.gate()
	m.inFlight++
	defer func() { m.inFlight-- }()
	c := weir.Call{Keys: map[string]string{"tenant": w.key}, Cost: make(map[string]int64)}
	for i, l := range f.limits {
		c.Cost[l.UnitName()] = w.reserves[i]
	}
	p, retry := m.acquire(c, w)
	if m.dead {
		return false, 0
	}
	if p == nil {
		f.reach("a call was refused")
		return false, retry
	}
	at := m.clock.world(p.Allowed())
	usage := make(map[string]int64)
	var debts []used
	for i, l := range f.limits {
		usage[l.UnitName()] = w.costs[i]
		u := used{at, i, w.key, min(w.reserves[i], w.costs[i]), m.id}
		if l.Scope == "" {
			u.key = ""
		}
		f.used = append(f.used, u)
		m.ledger.uses(&f.limits[i], u, w.reserves[i])
		if u.n = w.costs[i] - w.reserves[i]; u.n > 0 {
			debts = append(debts, u)
		}
		if w.reserves[i] == l.Most() && w.reserves[i] > 4 {
			f.reach("a call cost all units")
		}
	}
	if f.out != nil && m.ledger.latest == at && f.world.Now()-at < time.Microsecond {
		f.reach("a part in use was out")
		if out := f.out(); f.inUse() > out {
			f.wrong("parts of %d are in use, and the store counts %d as out, at %v", f.inUse(), out, at)
		}
	}
	if f.world.Now()-m.heard > time.Second {
		f.reach("a process without its store used its part")
	}
	_ = m.clock.Sleep(context.Background(), w.lasts)
	p.Report(outcome.Outcome{Class: outcome.OK, Usage: usage})
	for _, d := range debts {
		f.reach("a call used more than it reserved")
		d.at = f.world.Now()
		f.debts = append(f.debts, d)
	}
	return true, 0
}

// acquire returns the permit, or the stated wait.
func (m *member) acquire(c weir.Call, w work) (*weir.Permit, time.Duration) {
	if w.try {
		p := new(weir.Permit)
		if d := m.upstream.Try(c, p); !d.Allowed {
			return nil, d.RetryAfter
		}
		return p, 0
	}
	ctx := context.Background()
	if w.leaves > 0 {
		timed, cancel := m.clock.WithTimeout(ctx, w.leaves, context.Canceled)
		defer cancel()
		ctx = timed
	}
	p, err := m.upstream.Acquire(ctx, c)
	var refusal *weir.Refusal
	if errors.As(err, &refusal) {
		return nil, refusal.RetryAfter
	}
	return p, 0
}

func (f *faulty) reach(state string) { f.states[state]++ }

func (f *faulty) wrong(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// A distantStore is the store as a process reaches it.
type distantStore struct{ m *member }

var errLost = errors.New("the message was lost")

// exchange carries a request and its response. The request arrives even if its sender does not wait any longer.
func (d distantStore) exchange(ctx context.Context, do func(again bool)) error {
	defer d.m.gate()
	m, f := d.m, d.m.f
	w := f.world
	if m.dead {
		return w.Clock().Sleep(context.Background(), forever)
	}
	there, back := f.delay(), f.delay()
	up, down := m.up || f.down || f.chance(f.loss), m.back || f.down || f.chance(f.loss)
	if f.script != nil {
		up, down = f.script.fate(m)
		if m.dead {
			return w.Clock().Sleep(context.Background(), forever)
		}
	}
	m.messages++
	if up {
		return errors.Join(errLost, w.Clock().Sleep(ctx, forever))
	}
	twice, later := f.chance(f.twice), time.Duration(0)
	if twice && f.chance(0.5) { // the client of the store repeats the request after a lost connection
		later = time.Duration(w.Rand().Int64N(int64(100 * time.Millisecond)))
	}
	w.Go(func() {
		_ = w.Clock().Sleep(context.Background(), there)
		do(false)
		if twice {
			_ = w.Clock().Sleep(context.Background(), later)
			f.reach("a request arrived twice")
			do(true)
		}
	})
	if down {
		f.reach("a response was lost")
		return errors.Join(errLost, w.Clock().Sleep(ctx, forever))
	}
	if err := w.Clock().Sleep(ctx, there+later+back); err != nil {
		f.reach("a response was late")
		return err
	}
	m.heard = w.Now()
	return nil
}

func (f *faulty) chance(p float64) bool { return p > 0 && f.world.Rand().Float64() < p }

func (f *faulty) delay() time.Duration {
	return time.Duration(float64(f.travels)*f.world.Rand().ExpFloat64()) + time.Microsecond
}

func (d distantStore) Take(ctx context.Context, a *fleet.Ask) error {
	f := d.m.f
	own := *a // the sender may reuse its request before a late one arrives
	own.Settle, own.Claims, own.Grants = slices.Clone(a.Settle), slices.Clone(a.Claims), nil
	d.m.ledger.sends(f.world.Now(), a)
	if a.Again {
		f.reach("a request was repeated")
	}
	for i := range a.Settle {
		if a.Settle[i].Back > 0 {
			f.reach("units were returned")
		}
		if a.Settle[i].Owe > 0 {
			f.reach("use during an outage was reported")
		}
	}
	if len(a.Claims) > 0 && a.Claims[0].Cold > 0 {
		f.reach("a share of a cold limit was requested")
	}
	var result error
	err := d.exchange(ctx, func(again bool) {
		copied := own
		copied.Settle, copied.Claims, copied.Grants = slices.Clone(own.Settle), slices.Clone(own.Claims), nil
		copied.Again = own.Again || again
		if result = f.store.Take(context.Background(), &copied); result == nil {
			f.audit.takes(f.world.Now(), d.m, &copied)
		}
		own.Now, own.Granted, own.Grants = copied.Now, copied.Granted, copied.Grants
	})
	if err != nil {
		return err
	}
	if errors.Is(result, fleet.ErrWindow) {
		f.reach("a request was for another window")
	}
	if result == nil && own.Granted < own.Copies {
		f.reach("the store had too few units")
	}
	if slices.ContainsFunc(own.Grants, func(g fleet.Grant) bool { return g.Cold }) {
		f.reach("a store did not know the usage")
	}
	if result == nil {
		d.m.ledger.receives(f, &own)
	}
	a.Now, a.Granted, a.Grants = own.Now, own.Granted, own.Grants
	return result
}

func (d distantStore) Beat(ctx context.Context, b *fleet.Beat) (s fleet.Standing, err error) {
	own := *b
	if b.Dead || b.Idle {
		d.m.f.reach("a death was reported")
	}
	var result error
	if err := d.exchange(ctx, func(bool) { s, result = d.m.f.store.Beat(context.Background(), &own) }); err != nil {
		return fleet.Standing{}, err
	}
	if result == nil {
		d.m.ledger.hears(d.m.f.world.Now(), b, &s)
	}
	return s, result
}

func (d distantStore) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	return d.m.f.store.Load(ctx, group, names)
}

func (d distantStore) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	return d.m.f.store.Swap(ctx, group, r)
}

func (d distantStore) Init(ctx context.Context, group string) error {
	return d.m.f.store.Init(ctx, group)
}

func (d distantStore) Known(ctx context.Context, group string) (time.Time, bool, error) {
	return d.m.f.store.Known(ctx, group)
}

func (d distantStore) Close() error { return nil }

// byKey returns the usage of each limit and key, in the order of its instants.
func byKey(all []used) map[used][]used {
	keys := make(map[used][]used)
	for _, u := range all {
		k := used{limit: u.limit, key: u.key}
		keys[k] = append(keys[k], u)
	}
	for _, some := range keys {
		slices.SortStableFunc(some, func(a, b used) int { return int(a.at - b.at) })
	}
	return keys
}

// over returns by how many units the worst window of a limit and key exceeds the limit.
func (f *faulty) over() (worst int64) {
	for k, all := range byKey(f.used) {
		worst = max(worst, overLimit(f.limits[k.limit], all))
	}
	return worst
}

func overLimit(l limit.Limit, all []used) (worst int64) {
	switch l.Shape {
	case limit.Bucket:
		var level float64
		var last time.Duration
		for _, u := range all {
			level = max(0, level-l.PerSecond()*(u.at-last).Seconds()) + float64(u.n)
			last = u.at
			if over := level - float64(l.Full()); over > 1e-6 {
				worst = max(worst, 1+int64(over))
			}
		}
		return worst
	case limit.Rolling:
		var sum int64
		first := 0
		for _, u := range all {
			for sum += u.n; all[first].at <= u.at-l.Per; first++ {
				sum -= all[first].n
			}
			worst = max(worst, sum-l.Amount)
		}
		return worst
	}
	counts := make(map[time.Time]int64)
	for _, u := range all {
		start := l.Windows(sim.New(0).Clock().Wall(u.at)).Start
		counts[start] += u.n
		worst = max(worst, counts[start]-l.Amount)
	}
	return worst
}

// digest identifies a history.
func (f *faulty) digest() uint64 {
	h := fnv.New64a()
	for _, u := range f.used {
		_, _ = fmt.Fprintln(h, u)
	}
	return h.Sum64()
}

// speed returns the speed of a clock.
func speed(r *rand.Rand) float64 { return 1 + (r.Float64()-0.5)/1000 }
