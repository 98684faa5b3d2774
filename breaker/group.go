package breaker

import (
	"cmp"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Other is the key of the breaker that a full Group gives to all further keys.
const Other = "(other)"

// defaultKeys is how many keys a Group keeps apart unless told otherwise.
const defaultKeys = 1024

// retryFull is how long a Group that found nothing to evict does not look
// again. Looking walks over all keys.
const retryFull = time.Second

// A Group keeps a Breaker per key, made when the key is first used, so that one
// bad shard, tenant or route does not stop the others. It is safe for
// concurrent use; finding a key that is there takes no lock.
//
// It holds a bounded number of keys. When it is full, it evicts keys that are
// closed without a failure in the window, or whose open time has been over for
// longer than Config.MaxOpen; those not asked for lately go first. If there are
// none, so many keys are in trouble that the upstream as a whole probably is:
// further keys then share one breaker, Other.
type Group struct {
	onChange func(Change)
	max      int
	other    *Breaker
	shared   atomic.Bool // other has been used

	live sync.Map // of string to *member

	mu        sync.Mutex // guards what follows, and writes to live
	cfg       *Config
	fleet     Fleet // nil unless its breakers are of one
	n         int
	fullUntil time.Duration
	full      bool
}

// A member is the breaker of one key.
type member struct {
	Breaker
	used atomic.Bool // asked for again since it was made or the group was last swept
}

// NewGroup returns a Group of at most keys breakers, each as by New; 0 keys
// means 1,024.
func NewGroup(keys int, c Config, onChange func(Change)) *Group {
	return &Group{
		cfg: new(c.WithDefaults()), onChange: onChange, max: cmp.Or(keys, defaultKeys),
		other: New(Other, c, onChange),
	}
}

// For returns the breaker of key. Ask anew for each call: a breaker that was
// evicted goes on working, but only for those who still hold it.
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

// All lists the breakers by key, Other included once it has been used.
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

// Forget removes the breaker of a key. Calls that still hold it are not disturbed.
func (g *Group) Forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.live.LoadAndDelete(key); ok {
		g.n--
	}
}

// add makes the breaker of a key that is not known; where there is no room it is Other, which all
// such keys share.
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

// sweep evicts up to an eighth of the keys, so that the next few need no sweep,
// and reports whether there is room now. Keys in use get a second chance: a
// flood of keys that come once displaces its own.
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

// evict forgets so many breakers at most of which nothing is lost, and reports whether there was one.
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

// idle reports whether nothing is lost by forgetting b. An open breaker that
// nobody comes back to must not keep its place for ever.
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
