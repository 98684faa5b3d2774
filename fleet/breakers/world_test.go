package breakers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// A world is a fleet in virtual time, which advances in ticks. In each tick, the processes that have work act one
// after the other.
type world struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	now   time.Duration
	cfg   breaker.Config
	store *fleet.Memory
	epoch time.Time // of the store's clock
	all   []*process

	down    bool                   // the upstream fails
	trouble func(p *process) error // error of a call before the store executes it; nil means none
	lost    func(p *process) error // error after the store has executed a call: the answer is lost
	noTake  bool                   // the store rejects asks
	slow    time.Duration          // latency of a call to the store
}

// tick is how often a process can act.
const tick = 50 * time.Millisecond

// A process has its own clock.
type process struct {
	w       *world
	n       int
	off     time.Duration
	b       *breaker.Breaker
	s       *Breakers
	next    time.Duration // by its own clock
	dead    bool
	changes []breaker.Change
	asks    []fleet.Ask // sent to the store
	still   bool        // its loop is stopped
}

func newWorld(t *testing.T, seed uint64, c breaker.Config, n int) *world {
	w := &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, cfg: c.WithDefaults()}
	w.epoch = time.Unix(1_900_000_000, 0)
	w.store = fleet.NewMemory(func() time.Time { return w.epoch.Add(w.now) })
	for range n {
		w.start()
	}
	return w
}

func (w *world) start() *process {
	p := &process{w: w, n: len(w.all), off: time.Duration(w.r.Int64N(int64(1000 * time.Hour)))}
	p.b = breaker.New("", w.cfg, func(c breaker.Change) { p.changes = append(p.changes, c) })
	p.s = New(Config{Store: flaky{p}, Group: "up", Clock: own{p}, Rand: rand.New(rand.NewPCG(w.r.Uint64(), 2))}, p.b)
	w.all = append(w.all, p)
	return p
}

func (p *process) now() time.Duration { return p.w.now + p.off }

// step advances the time by a tick.
func (w *world) step() {
	w.now += tick
	for _, i := range w.r.Perm(len(w.all)) {
		if p := w.all[i]; !p.dead && !p.still && (p.now() >= p.next || p.s.fails == 0 && p.s.mail.news) {
			p.next = p.s.Sync(w.t.Context())
		}
	}
}

func (w *world) pass(d time.Duration, each func()) {
	w.t.Helper()
	for end := w.now + d; w.now < end; {
		w.step()
		if each != nil {
			each()
		}
	}
}

// call makes a call that ends immediately, unless the breaker refuses it.
func (p *process) call(class outcome.Class) bool {
	permit, _, ok := p.b.Admit(p.now())
	if ok {
		p.b.Report(p.now(), permit, outcome.Outcome{Class: class})
	}
	return ok
}

func (w *world) calls() {
	class := outcome.OK
	if w.down {
		class = outcome.Failed
	}
	for _, p := range w.all {
		if !p.dead {
			p.call(class)
		}
	}
}

func (w *world) phases() (n [3]int) {
	for _, p := range w.all {
		if !p.dead {
			n[p.b.State().Phase]++
		}
	}
	return n
}

// wait waits until all processes are in a phase and returns how long that took.
func (w *world) wait(phase breaker.Phase, most time.Duration, each func()) time.Duration {
	w.t.Helper()
	begin := w.now
	for w.now-begin < most {
		if n := w.phases(); n[phase] == n[0]+n[1]+n[2] {
			return w.now - begin
		}
		w.step()
		if each != nil {
			each()
		}
	}
	w.t.Fatalf("seed %d: after %v: %v closed, open, half-open; want all %v", w.seed, most, w.phases(), phase)
	return 0
}

// own is the clock of a process. It is ahead of the world's by an offset.
type own struct{ p *process }

var _ clock.Clock = own{}

func (c own) Now() time.Duration { return c.p.now() }

func (own) Sleep(context.Context, time.Duration) error { return errors.New("nobody sleeps here") }

func (own) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c own) Wall(at time.Duration) time.Time { return time.Unix(0, 0).Add(at) }

func (own) Deadline(context.Context) (time.Duration, bool) { return 0, false }

// flaky is the store of a process, with failures.
type flaky struct{ p *process }

var _ fleet.Store = flaky{}

var errAway = errors.New("store away")

func (f flaky) call(do func()) error {
	w := f.p.w
	if w.trouble != nil {
		if err := w.trouble(f.p); err != nil {
			return err
		}
	}
	if w.slow > 0 {
		w.now += time.Duration(w.r.Int64N(int64(w.slow)))
	}
	do()
	if w.slow > 0 {
		w.now += time.Duration(w.r.Int64N(int64(w.slow)))
	}
	if w.lost != nil {
		return w.lost(f.p)
	}
	return nil
}

func (f flaky) Take(ctx context.Context, a *fleet.Ask) (err error) {
	f.p.asks = append(f.p.asks, *a)
	if f.p.w.noTake {
		return errAway
	}
	if e := f.call(func() { err = f.p.w.store.Take(ctx, a) }); e != nil {
		return e
	}
	return err
}

func (f flaky) Load(ctx context.Context, group string, names []string) (r []fleet.Record, now time.Time, err error) {
	if e := f.call(func() { r, now, err = f.p.w.store.Load(ctx, group, names) }); e != nil {
		return nil, time.Time{}, e
	}
	return r, now, err
}

func (f flaky) Swap(ctx context.Context, group string, in fleet.Record) (r fleet.Record, ok bool, err error) {
	if e := f.call(func() { r, ok, err = f.p.w.store.Swap(ctx, group, in) }); e != nil {
		return fleet.Record{}, false, e
	}
	return r, ok, err
}

func (f flaky) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	return f.p.w.store.Beat(ctx, b)
}

func (f flaky) Init(ctx context.Context, group string) error { return f.p.w.store.Init(ctx, group) }

func (f flaky) Known(ctx context.Context, group string) (time.Time, bool, error) {
	return f.p.w.store.Known(ctx, group)
}

func (f flaky) Close() error { return nil }

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, at %v: %s", w.seed, w.now, fmt.Sprintf(format, args...))
}
