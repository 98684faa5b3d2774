package breaker

import (
	"cmp"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Other is the key of the breaker that a full Group uses for all further keys.
const Other = "(other)"

const defaultKeys = 1024

// retryFull is the interval between searches for keys to evict after a search found none. A search walks over all keys.
const retryFull = time.Second

// A Group has a Breaker per key, created when the key is first used, so that one bad shard, tenant or route does not affect the
// other keys. It is safe for concurrent use. Finding an existing key takes no lock.
//
// The number of keys is bounded. A full Group evicts keys that are closed without a failure in the window, or whose open time has
// been over for longer than Config.MaxOpen. It prefers keys that were not used recently. If there are none, so many keys are
// failing that the upstream as a whole probably is: further keys then share one breaker, Other.
type Group struct {
	onChange func(Change)
	max      int
	other    *Breaker
	shared   atomic.Bool // other has been used

	live sync.Map // of string to *member

	mu        sync.Mutex // guards the following fields, and writes to live
	cfg       *Config
	fleet     Fleet // nil unless its breakers belong to one
	n         int
	fullUntil time.Duration
	full      bool
}

// A member is the breaker of one key.
type member struct {
	Breaker
	used atomic.Bool // used again since it was created or since the last sweep
}

// NewGroup returns a Group of at most keys breakers, configured as by New; 0 keys means 1,024.
func NewGroup(keys int, c Config, onChange func(Change)) *Group {
	return &Group{
		cfg: new(c.WithDefaults()), onChange: onChange, max: cmp.Or(keys, defaultKeys),
		other: New(Other, c, onChange),
	}
}

// For returns the breaker of key. Call it for each call: an evicted breaker still works, but only for callers that still have it.
func (g *Group) For(now time.Duration, key string) *Breaker {
	if v, ok := g.live.Load(key); ok {
		m := v.(*member)
		if !m.used.Load() { // a load shares the cache line, a store does not
			m.used.Store(true)
		}
		return &m.Breaker
	}
	return g.add(now, key)
}

// All yields the breakers by key, including Other once it has been used.
func (g *Group) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) {
		for key, v := range g.live.Range {
			if !yield(key.(string), &v.(*member).Breaker) {
				return
			}
		}
		if g.shared.Load() {
			yield(Other, g.other)
		}
	}
}

// Forget removes the breaker of a key. Calls that still use it are not affected.
func (g *Group) Forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.live.LoadAndDelete(key); ok {
		g.n--
	}
}

// add creates the breaker of an unknown key. If there is no room it returns Other, which all such keys share.
func (g *Group) add(now time.Duration, key string) *Breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v, ok := g.live.Load(key); ok {
		return &v.(*member).Breaker
	}
	if g.n >= g.max && !g.sweep(now) {
		g.shared.Store(true)
		return g.other
	}
	m := &member{Breaker: Breaker{key: key, first: g.cfg, onChange: g.onChange}}
	if g.fleet != nil {
		m.Join(g.fleet)
	}
	g.live.Store(key, m)
	g.n++
	return &m.Breaker
}

// sweep evicts up to an eighth of the keys, so that the next few need no sweep, and reports whether there is room now. A used key
// gets a second chance, so that many keys that are used once displace each other.
func (g *Group) sweep(now time.Duration) bool {
	if g.full && now < g.fullUntil {
		return false
	}
	if !g.evict(now, g.max/8+1) {
		g.evict(now, 1)
	}
	g.full, g.fullUntil = g.n >= g.max, later(now, retryFull)
	return !g.full
}

// evict removes at most most breakers without relevant state, and reports whether there was one.
func (g *Group) evict(now time.Duration, most int) (some bool) {
	for key, v := range g.live.Range {
		m := v.(*member)
		if m.used.Swap(false) || !m.idle(now) {
			continue
		}
		g.live.Delete(key)
		g.n--
		some = true
		if most--; most == 0 {
			break
		}
	}
	return some
}

// idle reports whether b has no relevant state. An open breaker that is no longer used must not stay forever.
func (b *Breaker) idle(now time.Duration) bool {
	s := b.load()
	switch {
	case s.Held:
		return false
	case s.Phase == Closed:
		return s.Recent.within(now, s.cfg.Window) == 0
	}
	return now > later(s.Until, s.cfg.MaxOpen)
}
