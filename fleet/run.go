package fleet

import (
	"context"
	"errors"
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

// start begins what attends the fleet; the lock is held.
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

// Close gives back what is leased and not spent and this process's parts, waiting at most
// as long as ctx, and ends what Start began. The store stays open. If it is called again it
// waits for the first call and returns the same.
func (f *Fleet) Close(ctx context.Context) error {
	f.once.Do(func() { f.gone = f.close(ctx) })
	return f.gone
}

// close is Close, once: what Start began ends first, so that nothing is taken after what was leased has gone back.
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
	// tick is how often Run looks after the groups; each process a little earlier or later, so that a fleet does not in step.
	tick = 250 * time.Millisecond
	// idleQueue is how long a queue is kept in which nobody waits.
	idleQueue = 10 * time.Second
)

// Run beats for the groups of this process, gives back what is leased and idle, and looks
// whether the store is away, until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	// Beats must go on while something is given back to a store that stands still.
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

// within is a random time below d.
func (f *Fleet) within(d time.Duration) time.Duration {
	if f.o.Rand != nil {
		return time.Duration(f.o.Rand.Int64N(int64(d)))
	}
	return rand.N(d)
}

// all is the groups of this process.
func (f *Fleet) all() []*Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Group, 0, len(f.groups))
	for _, name := range slices.Sorted(maps.Keys(f.groups)) { // in the same order each time, for simulators
		all = append(all, f.groups[name])
	}
	return all
}

// spawn lets do go on beside.
func (f *Fleet) spawn(do func()) {
	if !f.begin(do) {
		go do() // somebody who still calls waits for it
	}
}

// begin lets do go on beside, for Close to wait for. After Close has begun it does not.
func (f *Fleet) begin(do func()) bool {
	if c, ok := f.clock.(interface{ Go(func()) }); ok { // sim.Clock: a simulator knows only its own goroutines
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
