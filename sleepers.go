package weir

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
)

// sleepers are calls that wait, and are woken when their breaker opens, when a reload has charged them
// to other limits, and when a pause is lifted. They are those that sleep by themselves: for the time of a retry, for an
// answer of the store, in a gate of one's own. Calls that stand in a line, of a limit or of a pause, are woken by the line.
//
// A call is noted before it looks for the last time whether it has to wait, so that no change
// falls between the look and the sleep.
type sleepers struct {
	clock  clock.Clock
	closed atomic.Bool // nobody is to wait any more
	mu     sync.Mutex  // nothing else is locked while it is held
	all    map[*sleeper]struct{}
	n      uint64 // sleepers so far
}

// A sleeper is a call that waits.
type sleeper struct {
	breaker *breaker.Breaker
	n       uint64 // in the order in which they came
	wake    func()
	looks   bool                    // woken, it looks again what it has to wait for
	charged atomic.Pointer[charged] // for which limits it waits; nil if it does not look for that, woken
	opened  atomic.Bool             // it was woken because the breaker opened, its limits are others, or nobody is to wait
}

// add notes a call before it begins to wait. It must be removed again, on every path.
func (b *sleepers) add(s *sleeper) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = make(map[*sleeper]struct{})
	}
	b.n++
	s.n = b.n
	b.all[s] = struct{}{}
}

// remove forgets a call that waits no more. It may have been woken meanwhile, or be about to be.
func (b *sleepers) remove(s *sleeper) {
	b.mu.Lock()
	delete(b.all, s)
	b.mu.Unlock()
}

// wakeOpened wakes those whose breaker is open. They ask it again, and are refused unless it lets one of
// them through as a probe.
func (b *sleepers) wakeOpened(now time.Duration) {
	for _, s := range b.which(func(s *sleeper) bool { return isOpen(now, s.breaker) }) {
		s.opened.Store(true)
		s.wake()
	}
}

// wakeAll wakes all, as nobody is to wait any more.
func (b *sleepers) wakeAll() {
	b.closed.Store(true)
	for _, s := range b.which(func(*sleeper) bool { return true }) {
		s.opened.Store(true)
		s.wake()
	}
}

// goesBy says for which limits it waits.
func (s *sleeper) goesBy(c charged) { s.charged.Store(&c) }

// wakeMoved wakes those that wait for other limits than those by a policy.
func (b *sleepers) wakeMoved(v *live) {
	for _, s := range b.which(func(s *sleeper) bool { c := s.charged.Load(); return c != nil && c.moved(v) }) {
		s.opened.Store(true)
		s.wake()
	}
}

// wakeLooking wakes those that look again: a pause was lifted, or a limit raised.
func (b *sleepers) wakeLooking() {
	for _, s := range b.which(func(s *sleeper) bool { return s.looks }) {
		s.wake()
	}
}

// which are the sleepers that are picked, in the order in which they came. They are woken when the
// lock is free again: what wakes them may call out.
func (b *sleepers) which(pick func(*sleeper) bool) (all []*sleeper) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.all {
		if pick(s) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *sleeper) int { return cmp.Compare(a.n, b.n) }) // simulators must repeat
	return all
}

// isOpen reports whether a breaker lets nobody through now. No breaker is never open.
func isOpen(now time.Duration, b *breaker.Breaker) bool {
	return b != nil && b.Look(now).Phase == breaker.Open
}

// sleep sleeps for d by the upstream's clock, or until the breaker opens, which it then reports, or until a pause
// is lifted, or until ctx ends.
func (b *sleepers) sleep(ctx context.Context, of *breaker.Breaker, d time.Duration) (opened bool, err error) {
	w := clock.NewWaker(b.clock)
	s := &sleeper{breaker: of, wake: w.Wake, looks: true}
	b.add(s)
	defer b.remove(s)
	if b.closed.Load() { // which may have begun before it was heard
		return true, nil
	}
	err = w.Sleep(ctx, d)
	return err == nil && s.opened.Load(), err
}

// context is one that ends when the breaker opens, too, or when nobody is to wait any more. What waits with it waits
// elsewhere than here.
func (b *sleepers) context(ctx context.Context, of *breaker.Breaker) (inner context.Context, s *sleeper, done func()) {
	inner, cancel := b.clock.WithTimeout(ctx, math.MaxInt64/4, nil)
	s = &sleeper{breaker: of, wake: cancel}
	b.add(s)
	if b.closed.Load() { // which may have begun before it was heard
		s.opened.Store(true)
		cancel()
	}
	return inner, s, func() { b.remove(s); cancel() }
}
