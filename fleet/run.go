package fleet

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Start starts Run and the functions of Attend. They end with Close.
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

// Running reports whether Start was called and Close was not.
func (f *Fleet) Running() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ctx != nil && !f.closed
}

// start starts the function of an extra. The lock is held.
func (f *Fleet) start(x *extra) {
	ctx, stop := context.WithCancel(f.ctx)
	x.stop = stop
	f.wg.Go(func() { x.run(ctx) })
}

// Attend runs a function from Start until Close, or until the returned function is called.
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

// Close returns leased units and this process's parts, waits no longer than ctx, and ends what Start began. The
// store stays open. A second call waits for the first one and returns the same error.
func (f *Fleet) Close(ctx context.Context) error {
	f.once.Do(func() { f.gone = f.close(ctx) })
	return f.gone
}

// close implements Close. First it ends what Start began, so that no units are taken after leases were
// returned.
func (f *Fleet) close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	stop := f.stop
	f.mu.Unlock()
	if stop != nil {
		stop()
		ended := make(chan struct{})
		go func() { f.wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	err := f.giveBack(ctx, true)
	for _, g := range f.all() {
		err = errors.Join(err, g.leave(ctx))
	}
	f.endLife(err == nil)
	return err
}

const (
	// tick is the average time between two rounds of Run. It is randomized, so that the processes of a fleet do
	// not run in step.
	tick = 250 * time.Millisecond
	// idleQueue is how long an unused queue is kept.
	idleQueue = 10 * time.Second
)

// Run sends the heartbeats of this process's groups, returns idle leases and detects outages of the store,
// until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	// Heartbeats must continue while a request to a stalled store returns units.
	f.begin(func() { f.beatAll(ctx) })
	f.begin(func() { f.reportDeaths(ctx) })
	for {
		f.watch(f.clock.Now())
		f.tell.Store(0)
		_ = f.giveBack(ctx, false)
		if f.rest(ctx, tick/2+f.within(tick)) != nil {
			return
		}
	}
}

// within returns a random duration below d.
func (f *Fleet) within(d time.Duration) time.Duration {
	if f.o.Rand != nil {
		return time.Duration(f.o.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

// all returns the groups of this process.
func (f *Fleet) all() []*Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Group, 0, len(f.groups))
	for _, name := range slices.Sorted(maps.Keys(f.groups)) { // always in the same order, for simulators
		all = append(all, f.groups[name])
	}
	return all
}

// spawn runs do on another goroutine.
func (f *Fleet) spawn(do func()) {
	if !f.begin(do) {
		go do() // a caller still waits for it
	}
}

// begin runs do on another goroutine, and reports whether it did. Close waits for it. After Close has begun, it
// does not run do.
func (f *Fleet) begin(do func()) bool {
	if c, ok := f.clock.(interface{ Go(func()) }); ok { // sim.Clock: a simulator runs only its own goroutines
		c.Go(do)
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.wg.Go(do)
	}
	return !f.closed
}
