package limit

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

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

// Running reports whether Start was called, and Close was not.
func (f *Fleet) Running() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ctx != nil && !f.closed
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
			f.tell.Store(0)
			_ = f.giveBack(ctx, false)
		}
		if f.rest(ctx, f.pause(f.clock.Now())) != nil {
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
		g.beats++
		b := Beat{Group: g.name, Client: f.o.Client, Seq: g.beats, Silence: beatKeep.Microseconds() / 3, Life: beatKeep.Microseconds(), None: true}
		s, err := f.store.Beat(ctx, &b)
		now := f.clock.Now()
		if err != nil {
			f.fails(now, err)
			return
		}
		f.alive.Store(max(1, s.Alive))
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
