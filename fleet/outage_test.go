package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An outage is a fleet of real processes and a store in virtual time. The network between them delays and loses
// messages, and fails. Every used unit is recorded with its instant, and all windows are checked.
type outage struct {
	t     testing.TB
	rng   *rand.Rand
	limit limit.Limit
	other *limit.Limit // each call takes one unit of it, too; nil if there is none
	o     Options
	begin time.Time

	granted *[]unit // grants of the store, if they are recorded
	rtt     time.Duration
	loss    float64
	cost    int64
	big     int64   // the cost of expensive calls
	costly  float64 // the share of expensive calls
	calm    bool    // few calls come
	wait    time.Duration

	mu     sync.Mutex
	memory *Memory
	cold   map[cellKey]bool // of an emptied store: keys that it has created; nil if it was not emptied
	born   int64
	down   bool
	blind  bool      // during an outage requests get no response; otherwise they fail immediately
	seen   *requests // requests that arrive at the store; nil if they are not counted

	each     func(id int, o *Options) // changes the options of one process; nil means no changes
	rescopes bool                     // a rename changes the scope instead of the name
	crowded  bool                     // every other process has no room for the key

	was      limit.Limit // before a reload
	reloaded time.Duration
	renamed  time.Duration // when the limit replaced one with another name

	ended  bool
	ids    int
	procs  []*process
	wanted []unit
	went   []unit
	calls  sync.WaitGroup
}

type unit struct {
	at  time.Duration
	n   int64
	by  int
	own bool
}

// A process is one process of the fleet.
type process struct {
	w        *outage
	id       int
	fleet    *Fleet
	registry atomic.Pointer[limit.Registry]
	other    *limit.Registry
	clock    *drifting
	rng      *rand.Rand
	demand   float64
	stop     chan struct{}

	up, back atomic.Bool // requests to the store are lost, or responses
	dead     atomic.Bool
	iced     atomic.Bool // it was frozen at some time
}

func newOutage(t testing.TB, seed uint64, l limit.Limit) *outage {
	return &outage{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), limit: l, begin: time.Now(), memory: NewMemory(nil),
		rtt: 2 * time.Millisecond, cost: 1, wait: 2 * time.Second,
	}
}

// loses reports whether a message is lost.
func (w *outage) loses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64() < w.loss
}

func (w *outage) now() time.Duration { return time.Since(w.begin) }

// at calls a function at an instant of the history.
func (w *outage) at(d time.Duration, do func()) { time.AfterFunc(d-w.now(), do) }

// reload changes the limit for all processes. The new limit is in force after the last process has read it.
// Until then, other processes spend by the old one, and the store counts as long as that one requires.
func (w *outage) reload(at time.Duration, l limit.Limit) {
	w.at(at, func() {
		w.mu.Lock()
		w.was, w.limit, w.reloaded = w.limit, l, at
		procs := slices.Clone(w.procs)
		w.mu.Unlock()
		for _, p := range procs {
			go func() { // a frozen process reads its file when it continues
				if err := p.registry.Load().Set(p.fleet.clock.Now(), l); err != nil {
					w.t.Error(err)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if !p.dead.Load() {
					w.reloaded = max(w.reloaded, w.now())
				}
			}()
		}
	})
}

// rename changes the limit's name for all processes. Used units still count.
func (w *outage) rename(at time.Duration) {
	w.at(at, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.renamed = at
		if w.rescopes {
			w.limit.Scope += "x"
		} else {
			w.limit.Name += "2"
		}
		l := w.limit
		for _, p := range w.procs {
			go func() {
				r, err := limit.NewSharedEmpty(p.fleet.clock.Now(), l, p.fleet.Group("up"))
				if err != nil {
					w.t.Error(err)
				}
				p.registry.Store(r)
			}()
		}
	})
}

// join starts one more process.
func (w *outage) join(demand float64) *process {
	w.mu.Lock()
	p := &process{w: w, id: w.ids, demand: demand, stop: make(chan struct{}), rng: rand.New(rand.NewPCG(w.rng.Uint64(), 2))}
	o, ended, limit := w.o, w.ended, w.limit
	w.ids++
	w.mu.Unlock()
	p.clock = newDrifting(p.rng)
	if ended {
		p.dead.Store(true)
		return p
	}
	if w.each != nil {
		w.each(p.id, &o)
	}
	if o.Clock == nil && p.id%2 == 0 {
		o.Clock = p.clock
	}
	p.fleet = New(link{p}, o)
	p.registry.Store(p.shared(limit))
	if w.other != nil {
		p.other = p.shared(*w.other)
	}
	p.fleet.Start()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		w.mu.Unlock()
		p.kill()
		w.mu.Lock()
		return p
	}
	w.procs = append(w.procs, p)
	if w.crowded && p.id%2 == 1 {
		w.calls.Go(p.crowd)
	}
	if demand > 0 {
		w.calls.Go(p.arrive)
	}
	return p
}

func (p *process) shared(l limit.Limit) *limit.Registry {
	r, err := limit.NewShared(p.fleet.clock.Now(), l, p.fleet.Group("up"))
	if err != nil {
		p.w.t.Fatal(err)
	}
	return r
}

// arrive makes calls at random instants, demand per second.
func (p *process) arrive() {
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Duration(p.rng.ExpFloat64() / p.demand * float64(time.Second))):
		}
		n := p.w.cost
		if p.w.costly > 0 && p.rng.Float64() < p.w.costly {
			n = p.w.big
		}
		p.w.calls.Go(func() { p.call(n) })
	}
}

// call makes one call, and checks that it does not wait longer than allowed.
func (p *process) call(n int64) {
	w := p.w
	c := p.fleet.clock
	begin, now := w.now(), c.Now()
	w.mu.Lock()
	w.wanted = append(w.wanted, unit{begin, n, p.id, false})
	w.mu.Unlock()
	r := p.registry.Load()
	ok, own, v, err := p.go1(c, r, now+w.wait, n)
	at := w.now()
	if took := at - begin; took > w.wait+p.fleet.o.Timeout+5*time.Millisecond+w.wait/500 && !p.iced.Load() {
		w.t.Errorf("at %v: process %d waited %v, patience %v: %v %+v", at, p.id, took, w.wait, ok, v)
	}
	if err != nil {
		w.t.Error(err)
	}
	if !ok || p.dead.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := r.Limit(); w.renamed == 0 || at < w.renamed || l.Name == w.limit.Name && l.Scope == w.limit.Scope { // a call that waits for the replaced limit gets units of that one
		w.went = append(w.went, unit{at, n, p.id, own})
	}
}

func (p *process) go1(c clock.Clock, r *limit.Registry, until time.Duration, n int64) (ok, own bool, v limit.Verdict, err error) {
	var permit limit.Charges
	permit.Add(limit.Charge{Registry: r, Key: r.Limit().Scope, Cost: n})
	if p.other != nil {
		permit.Add(limit.Charge{Registry: p.other, Key: "", Cost: 1})
	}
	now := c.Now()
	v = permit.Take(now)
	for permit.Asks(v, until-now) {
		if v, err = permit.Fetch(context.Background(), now, until, limit.Normal); err != nil || !v.OK {
			return false, false, v, err
		}
		now = c.Now()
		v = permit.Take(now)
	}
	return v.OK, isOwn(permit.Turn(0)), v, nil
}

// crowd uses as many other keys as there is room for.
func (p *process) crowd() {
	key := func(i int) string { return fmt.Sprint("another", i) }
	for i := range room {
		p.registry.Load().Get(p.fleet.clock.Now(), key(i))
	}
	for i := 0; ; i++ {
		select {
		case <-p.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		var permit limit.Charges
		permit.Add(limit.Charge{Registry: p.registry.Load(), Key: key(i % room), Cost: 1})
		now := p.fleet.clock.Now()
		if v := permit.Take(now); v.Ask {
			_, _ = permit.Fetch(context.Background(), now, now, limit.Normal)
		}
	}
}

// surge makes many calls at the same instant.
func (p *process) surge(n int) {
	if p.dead.Load() {
		return
	}
	for range n {
		p.w.calls.Go(func() { p.call(p.w.cost) })
	}
}

// kill ends a process without notice. leave ends one with notice.
func (p *process) kill() {
	if !p.dead.Swap(true) {
		p.up.Store(true)
		p.back.Store(true)
		close(p.stop)
		p.w.calls.Go(func() { p.close(time.Millisecond) })
	}
}

func (p *process) leave() {
	if !p.dead.Swap(true) {
		close(p.stop)
		p.w.calls.Go(func() { p.close(3 * time.Second) })
	}
}

func (p *process) close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.fleet.Close(ctx) // the store may be unavailable
}

// end runs the history until an instant, and ends it.
func (w *outage) end(at time.Duration) {
	time.Sleep(at - w.now())
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	w.ended = true
	w.mu.Unlock()
	for _, p := range procs {
		p.clock.thaw()
		p.kill()
	}
	w.calls.Wait()
	time.Sleep(time.Minute) // messages under way arrive
}

// used returns how many units were used in a period.
func (w *outage) used(from, to time.Duration) int64 { return count(w.went, from, to) }

func count(all []unit, from, to time.Duration) (n int64) {
	for _, u := range all {
		if u.at >= from && u.at < to {
			n += u.n
		}
	}
	return n
}

// over returns by how many units the worst window exceeded a limit, and where.
func (w *outage) over() (worst int64, where string) {
	worst, where = w.overOf(w.limit, w.went)
	if w.other == nil {
		return worst, where
	}
	calls := slices.Clone(w.went)
	for i := range calls {
		calls[i].n = 1
	}
	if n, at := w.overOf(*w.other, calls); n > worst {
		return n, at + ", of the other limit"
	}
	return worst, where
}

func (w *outage) overOf(l limit.Limit, went []unit) (worst int64, where string) {
	slices.SortStableFunc(went, func(a, b unit) int { return int(a.at - b.at) })
	note := func(n int64, at time.Duration) {
		if n > worst {
			worst, where = n, fmt.Sprintf("at %v", at)
		}
	}
	switch l.Shape {
	case limit.Bucket: // an exact bucket: all windows are within the limit if and only if it never overflows
		m := bucket.MeterOf(l.Rate)
		level, last := int64(0), time.Duration(0) // in thousandths of the meter's weight, for nanoseconds
		for _, u := range went {
			level = max(0, level-m.Drain*int64(u.at-last)) + u.n*m.Unit*1000
			last = u.at
			note((level-m.Cap*1000+m.Unit*1000-1)/(m.Unit*1000), u.at)
		}
	case limit.Rolling: // usage in the window before a reload counts in the one after it
		if l.Name != w.limit.Name || w.reloaded == 0 {
			w.rolled(went, l, 0, note)
			break
		}
		at, _ := slices.BinarySearchFunc(went, w.reloaded, func(u unit, at time.Duration) int { return int(u.at - at) })
		w.rolled(went[:at], w.was, 0, note)
		w.rolled(went, l, w.reloaded, note)
	default:
		counts := make(map[int64]int64)
		for _, u := range went {
			start := l.Windows(w.begin.Add(u.at)).Start.Unix()
			counts[start] += u.n
			note(counts[start]-l.Amount, u.at)
		}
	}
	return worst, where
}

// rolled records each window of a rolling limit that is in force from an instant on.
func (w *outage) rolled(went []unit, l limit.Limit, from time.Duration, note func(n int64, at time.Duration)) {
	var sum int64
	first := 0
	for i, u := range went {
		if u.at < from-w.was.Per {
			first = i + 1
			continue
		}
		sum += u.n
		for went[first].at <= u.at-l.Per {
			sum -= went[first].n
			first++
		}
		if u.at >= from {
			note(sum-l.Amount, u.at)
		}
	}
}

// empty restarts the store without its data.
func (w *outage) empty() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.memory, w.cold, w.born = NewMemory(nil), make(map[cellKey]bool), now.UnixMicro()
	w.memory.groups["up"] = &group{make(map[cellKey]*Cell), make(map[uint64]*answer), make(map[string]*record), NewMembers(w.born, false)}
}

// spent makes the cells of an emptied store start as used up.
func (w *outage) spent(m *Memory, a *Ask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[a.Group]
	make := func(r *Rule, key string, win *limit.Windows) {
		k := cellKey{r.Name, key}
		if w.cold[k] {
			return
		}
		w.cold[k] = true
		c := &Cell{Shape: r.Shape}
		at := allIn(w.born)
		c.turnTo(at, r, win)
		switch r.Shape {
		case limit.Bucket:
			c.Fill.Weight = r.Meter.Cap
		case limit.Rolling:
			c.add(at, r, r.Amount)
		default:
			c.Count = r.Amount
		}
		c.keep(at, r)
		g.cells[k] = c
	}
	for i := range a.Settle {
		make(a.Settle[i].Rule, a.Settle[i].Key, &a.Settle[i].Windows)
	}
	for i := range a.Claims {
		make(a.Claims[i].Rule, a.Claims[i].Key, &a.Claims[i].Windows)
	}
}

// A link is a process's connection to the store.
type link struct{ p *process }

var errCut = errors.New("no answer")

// way delays one message. It reports false if the message is lost.
func (l link) way(cut *atomic.Bool) bool {
	w := l.p.w
	if cut.Load() || w.loses() {
		return false
	}
	w.mu.Lock()
	d := time.Duration(float64(w.rtt) / 2 * (1 + w.rng.ExpFloat64()/4))
	w.mu.Unlock()
	time.Sleep(d)
	return true
}

// do carries a request and its response. The store executes it even if no caller waits for the response any
// more.
func (l link) do(ctx context.Context, counted func(*requests) *[]int, do func(m *Memory) error) error {
	arrived, answered := make(chan error, 1), make(chan error, 1)
	go func() { // a message continues after its sender has given up
		if !l.way(&l.p.up) {
			return
		}
		w := l.p.w
		w.mu.Lock()
		down, blind, m := w.down, w.blind, w.memory
		if w.seen != nil {
			w.seen.count(w.now(), counted(w.seen))
		}
		w.mu.Unlock()
		switch {
		case down && blind:
			return
		case down:
			arrived <- errCut
			return
		}
		err := do(m)
		if l.way(&l.p.back) {
			answered <- err
		}
	}()
	select {
	case err := <-arrived:
		return err
	case err := <-answered:
		return err
	case <-ctx.Done():
		return errCut
	}
}

func (l link) Take(ctx context.Context, a *Ask) error {
	own := *a
	own.Settle, own.Claims, own.Grants = slices.Clone(a.Settle), slices.Clone(a.Claims), nil
	err := l.do(ctx, func(r *requests) *[]int { return &r.takes }, func(m *Memory) error {
		w := l.p.w
		w.mu.Lock()
		if w.cold != nil && m == w.memory {
			w.spent(m, &own)
		}
		w.mu.Unlock()
		err := m.Take(context.Background(), &own)
		if w.granted != nil && err == nil && own.Granted > 0 {
			w.mu.Lock()
			*w.granted = append(*w.granted, unit{at: w.now(), n: own.Granted, by: l.p.id})
			w.mu.Unlock()
		}
		return err
	})
	if err == nil || errors.Is(err, ErrWindow) {
		a.Now, a.Granted, a.Grants = own.Now, own.Granted, own.Grants
	}
	return err
}

func (l link) Beat(ctx context.Context, b *Beat) (s Standing, err error) {
	own := *b
	var out Standing
	err = l.do(ctx, func(r *requests) *[]int { return &r.beats }, func(m *Memory) (err error) {
		out, err = m.Beat(context.Background(), &own)
		return err
	})
	if err == nil {
		s = out
	}
	return s, err
}

func (l link) Load(ctx context.Context, group string, names []string) ([]Record, time.Time, error) {
	return l.p.w.memory.Load(ctx, group, names)
}

func (l link) Swap(ctx context.Context, group string, r Record) (Record, bool, error) {
	return l.p.w.memory.Swap(ctx, group, r)
}

func (l link) Init(ctx context.Context, group string) error { return l.p.w.memory.Init(ctx, group) }

func (l link) Known(ctx context.Context, group string) (time.Time, bool, error) {
	return l.p.w.memory.Known(ctx, group)
}

func (l link) Close() error { return nil }

// A drifting clock runs slightly wrong, and stops while its process is frozen. Reading it then blocks until the
// process continues.
type drifting struct {
	clock.Clock
	base   time.Duration
	by     float64
	frozen atomic.Int64 // until when, by the underlying clock
}

func newDrifting(r *rand.Rand) *drifting {
	return &drifting{Clock: clock.System, base: clock.System.Now(), by: 1 + (r.Float64()-0.5)/1000}
}

func (c *drifting) freeze(d time.Duration) { c.frozen.Store(int64(clock.System.Now() + d)) }
func (c *drifting) thaw()                  { c.frozen.Store(0) }

func (c *drifting) Now() time.Duration {
	for {
		now := clock.System.Now()
		if d := time.Duration(c.frozen.Load()) - now; d > 0 {
			time.Sleep(d)
			continue
		}
		return c.base + time.Duration(float64(now-c.base)/c.by)
	}
}

// system converts an instant or a duration to the underlying clock.
func (c *drifting) system(at time.Duration) time.Duration {
	return c.base + time.Duration(float64(at-c.base)*c.by)
}

func (c *drifting) local(d time.Duration) time.Duration {
	if d > time.Hour {
		return d
	}
	return time.Duration(float64(d)*c.by) + time.Microsecond
}

func (c *drifting) Wall(at time.Duration) time.Time { return clock.System.Wall(c.system(at)) }

func (c *drifting) Sleep(ctx context.Context, d time.Duration) error {
	return clock.System.Sleep(ctx, c.local(d))
}

func (c *drifting) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return clock.System.WithTimeout(ctx, c.local(d), cause)
}

func (c *drifting) Deadline(ctx context.Context) (time.Duration, bool) {
	at, ok := clock.System.Deadline(ctx)
	return c.base + time.Duration(float64(at-c.base)/c.by), ok
}
