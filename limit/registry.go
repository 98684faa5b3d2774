package limit

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A Registry holds the limiters of one limit by key. A limiter is made full on first use. It is evicted only when it
// is full again and room is needed, so that no caller gains by an eviction. Get takes no lock for a known key.
//
// It keeps MaxKeys keys, and up to four times as many while none can be evicted. Keys beyond that share one limiter,
// Other, which allows them together as much as one key. Keys of a shared limit beyond that are limited
// by the store alone. A Registry is safe for concurrent use.
type Registry struct {
	limit  atomic.Pointer[Limit]
	keys   table                   // keys with a separate limiter
	single atomic.Pointer[Limiter] // limiter of the key "", which needs no lookup
	other  atomic.Pointer[Limiter] // nil unless keys share it
	home   Home                    // nil unless other processes share the limit
	source Source                  // makes the limiters if there is a home
	joined atomic.Pointer[[]*Registry]
	budget bool // the limit counts dollars

	mu    sync.Mutex
	wall  func(time.Duration) time.Time // wall clock of calendar limits
	fresh *Limiter                      // template for new keys, not used itself
}

// An Option configures a new registry. Registries of shared limits have no options: they use the store's clock.
type Option func(*Registry)

// WithWall sets the wall clock of calendar limits. The default is the system's.
func WithWall(c clock.Clock) Option { return func(r *Registry) { r.wall = c.Wall } }

// NewRegistry returns a registry of a local limit, in which all keys start full. The error has all mistakes of the
// limit.
func NewRegistry(now time.Duration, l Limit, options ...Option) (*Registry, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	r := &Registry{wall: clock.System.Wall}
	for _, o := range options {
		o(r)
	}
	line := l.line(now)
	r.fresh = newLimiter(l, &line, r.calendar(now, l))
	r.limit.Store(&l)
	r.budget = l.IsBudget()
	r.single.Store(twin(r.fresh))
	return r, nil
}

// NewEmpty returns a registry in which all keys, also later ones, start without units. It is for a limit that
// replaces another one whose usage is not known.
func NewEmpty(now time.Duration, l Limit, options ...Option) (*Registry, error) {
	r, err := NewRegistry(now, l, options...)
	if err == nil {
		r.fresh.shape().empty(now)
		r.single.Store(twin(r.fresh))
	}
	return r, err
}

// NewShared returns a registry of a limit that several processes share. Its limiters hold the units that were granted
// to this process.
func NewShared(now time.Duration, l Limit, h Home) (*Registry, error) {
	return newShared(now, l, h, false)
}

// NewSharedEmpty is NewEmpty for a limit that several processes share.
func NewSharedEmpty(now time.Duration, l Limit, h Home) (*Registry, error) {
	return newShared(now, l, h, true)
}

// newShared takes the limiters from the home. The local fields of the registry stay unused.
func newShared(now time.Duration, l Limit, h Home, empty bool) (*Registry, error) {
	if err := validShared(l); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	r := &Registry{home: h, source: h.Source(now, l, empty), budget: l.IsBudget()}
	r.limit.Store(&l)
	r.single.Store(budgetOf(&l, r.source.New("")))
	return r, nil
}

// validShared returns the reasons why a limit cannot be shared.
func validShared(l Limit) error {
	errs := []error{l.Validate()}
	if l.Adaptive.On {
		errs = append(errs, errors.New("adaptive: a limit that a fleet shares cannot adapt its rate; turn adaptive off, or do not share the limit"))
	}
	if l.Advertised != "" {
		errs = append(errs, fmt.Errorf("advertised %q: each process reads the limit from the upstream's responses, so it cannot be shared; leave advertised empty, or use NewRegistry", l.Advertised))
	}
	return errors.Join(errs...)
}

// Shared reports whether a fleet shares the limit.
func (r *Registry) Shared() bool { return r.home != nil }

// Limit returns the limit in force.
func (r *Registry) Limit() *Limit { return r.limit.Load() }

// Most returns the largest cost that can ever be met under the key.
func (r *Registry) Most(now time.Duration, key string) int64 {
	l := r.limit.Load()
	switch {
	case r.home != nil:
		return r.source.Most()
	case l.Advertised == "":
		return l.Most()
	}
	if full := r.Get(now, key).Look(now).Full; full > 0 {
		return full
	}
	return l.Most() // another limiter is just taking this one's place
}

// Burst returns the largest cost that is met as soon as the limit is full. For Most, a shared limit may have to be full for
// longer, which a busy one never is.
func (r *Registry) Burst(now time.Duration, key string) int64 {
	if r.home != nil {
		return r.source.Burst()
	}
	return r.Most(now, key)
}

// Get returns the limiter of the key. The key "" is for a limit without a scope. Get may make a limiter, and evict
// other limiters for it. The limiter that it returns can be evicted at any time. It then refuses, and the caller must
// call Get again.
func (r *Registry) Get(now time.Duration, key string) *Limiter {
	if key == "" {
		return r.single.Load()
	}
	if m := r.keys.get(key); m != nil {
		return m
	}
	return r.add(now, key)
}

// Own returns the limiter of a key, and whether it belongs to the key alone.
func (r *Registry) Own(now time.Duration, key string) (m *Limiter, own bool) {
	m = r.Get(now, key)
	if x := m.Leased(); x != nil {
		return m, x.Kept()
	}
	return m, r.other.Load() != m
}

// add makes the limiter of an unknown key. It evicts full limiters to have room. If there is no room, the key shares
// a limiter: Other, or an overflow limiter that the home keeps for a while.
func (r *Registry) add(now time.Duration, key string) *Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.keys.get(key); m != nil {
		return m
	}
	// Forgetting a drained limiter would refill it: when none is full, the registry grows.
	most := r.limit.Load().keys()
	r.keys.sweep(most, func(m *Limiter) bool { return m.shape().retire(now) })
	if r.keys.n/stretch >= most {
		if r.home != nil {
			return budgetOf(r.limit.Load(), r.source.Passing(now, key))
		}
		return r.sharing()
	}
	k := newRow(key)
	m := &k.own
	if r.home != nil {
		m = budgetOf(r.limit.Load(), r.source.New(k.key))
		r.source.Forget(k.key)
	} else {
		r.fresh.shape().copyTo(m)
		r.part(now, m)
	}
	r.keys.add(k, m)
	return m
}

const (
	searched = 16 // limiters checked for each new key to find full ones
	stretch  = 4  // times MaxKeys, while none is full
)

// Len returns how many keys have a separate limiter, without the key "".
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys.n
}

// All yields every key with its limiter: first the key "", then Other if keys share it, then the rest in no order.
// Keys may come and go meanwhile. Each key that exists throughout is yielded once.
func (r *Registry) All() iter.Seq2[string, *Limiter] {
	return func(yield func(string, *Limiter) bool) {
		if !yield("", r.single.Load()) {
			return
		}
		if m := r.other.Load(); m != nil && !yield(Other, m) {
			return
		}
		r.ofKeys(yield)
	}
}

// ofKeys yields the keys with a separate limiter. It holds the lock for one bucket at a time.
func (r *Registry) ofKeys(yield func(string, *Limiter) bool) {
	r.mu.Lock()
	r.keys.reads++
	of, all := r.keys.buckets.Load(), []*row(nil)
	defer func() {
		r.keys.reads--
		r.mu.Unlock()
	}()
	for i := range of {
		all = all[:0]
		r.keys.each(i, of, func(k *row) { all = append(all, k) })
		if len(all) > 0 && !r.unlocked(all, yield) {
			return
		}
	}
}

// unlocked yields keys without the lock held.
func (r *Registry) unlocked(all []*row, yield func(string, *Limiter) bool) bool {
	r.mu.Unlock()
	defer r.mu.Lock()
	for _, k := range all {
		if !yield(k.key, k.limiter.Load()) {
			return false
		}
	}
	return true
}

// Set changes the limit of every key. Units taken stay taken. A learned rate is kept unless Rate or Adaptive changes.
// A limiter that cannot bear the change is replaced by an empty one.
func (r *Registry) Set(now time.Duration, l Limit) error {
	err := l.Validate()
	if r.home != nil {
		err = validShared(l)
	}
	if err != nil {
		return fmt.Errorf("limit %s: %w", l.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.limit.Swap(&l); old.alike(&l) && (r.home == nil || old.Cold == l.Cold) {
		return nil
	}
	if r.home != nil {
		r.source.Set(now, l)
		return nil
	}
	line := l.line(now)
	fresh := newLimiter(l, &line, r.calendar(now, l))
	if !r.fresh.shape().untouched(now) {
		fresh.shape().empty(now)
	}
	r.fresh = fresh
	c := newChange(now, l)
	r.replace(c, &r.single)
	r.replace(c, &r.other)
	for i := range r.keys.buckets.Load() {
		r.keys.each(i, r.keys.buckets.Load(), func(k *row) { r.replace(c, &k.limiter) })
	}
	return nil
}

// replace changes a limiter in place, or replaces it.
func (r *Registry) replace(c *change, place *atomic.Pointer[Limiter]) {
	if m := place.Load(); m != nil && !m.shape().set(c) {
		place.Store(r.anew(c.now, m))
	}
}

// anew returns an empty limiter that replaces one taken out of use, with its debts.
func (r *Registry) anew(now time.Duration, old *Limiter) *Limiter {
	_, owed := old.shape().close(now)
	m := twin(r.fresh)
	m.shape().empty(now)
	assume(now, m, old, owed)
	return m
}

// assume makes a replacement count what the old limiter still counts: the usage in the window of a rolling limit, the
// debt of a bucket.
func assume(now time.Duration, m, old *Limiter, owed int64) {
	x, rolls := m.counter().(*rolling)
	from, rolled := old.counter().(*rolling)
	if rolls && rolled {
		x.assume(now, from)
		return
	}
	m.Owe(now, owed)
}
