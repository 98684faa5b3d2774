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

// sleepers are waiting calls that must be woken when their breaker opens, when a reload changes their limits, or when
// a pause is lifted. They wait outside of queues: before a retry, for the store, or in a custom gate. The queues of
// limits and pauses wake their calls themselves.
//
// A call is added before it checks for the last time whether it has to wait, so that no change is missed between the
// check and the sleep.
type sleepers struct {
	clock  clock.Clock
	closed atomic.Bool // the upstream drains: no call may wait
	mu     sync.Mutex  // no other lock is taken while it is held
	all    map[*sleeper]struct{}
	n      uint64 // sleepers so far
}

// A sleeper is a call that waits.
type sleeper struct {
	breaker *breaker.Breaker
	n       uint64 // order of arrival
	wake    func()
	looks   bool                    // when woken, it checks again what it waits for
	charged atomic.Pointer[charged] // the limits for which it waits; nil if a change of limits does not concern it
	opened  atomic.Bool             // woken because the breaker opened, its limits changed, or the upstream drains
}

// add adds a call before it begins to wait. It must be removed on every path.
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

// remove removes a call. It may have been woken meanwhile, or be about to be.
func (b *sleepers) remove(s *sleeper) {
	b.mu.Lock()
	delete(b.all, s)
	b.mu.Unlock()
}

// wakeOpened wakes the calls whose breaker is open. They ask it again. It may admit one call as a probe, and refuses
// all other calls.
func (b *sleepers) wakeOpened(now time.Duration) {
	for _, s := range b.which(func(s *sleeper) bool { return isOpen(now, s.breaker) }) {
		s.opened.Store(true)
		s.wake()
	}
}

// wakeAll wakes all calls, because none may wait any longer.
func (b *sleepers) wakeAll() {
	b.closed.Store(true)
	for _, s := range b.which(func(*sleeper) bool { return true }) {
		s.opened.Store(true)
		s.wake()
	}
}

// goesBy sets the limits for which it waits.
func (s *sleeper) goesBy(c charged) { s.charged.Store(&c) }

// wakeMoved wakes the calls whose limits differ under the new policy.
func (b *sleepers) wakeMoved(v *live) {
	for _, s := range b.which(func(s *sleeper) bool { c := s.charged.Load(); return c != nil && c.moved(v) }) {
		s.opened.Store(true)
		s.wake()
	}
}

// wakeLooking wakes the calls that check again, after a pause was lifted or a limit raised.
func (b *sleepers) wakeLooking() {
	for _, s := range b.which(func(s *sleeper) bool { return s.looks }) {
		s.wake()
	}
}

// which returns the selected sleepers in order of arrival. The caller wakes them after the lock is released, because
// waking may call out.
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

// isOpen reports whether a breaker admits no calls now. A nil breaker is never open.
func isOpen(now time.Duration, b *breaker.Breaker) bool {
	return b != nil && b.Look(now).Phase == breaker.Open
}

// sleep sleeps for d by the upstream's clock, or until the breaker opens, which it reports, a pause is lifted, or ctx
// ends.
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

// context returns a context that also ends when the breaker opens or the upstream drains. It is for waits in code
// other than this package.
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
