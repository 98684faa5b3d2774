package fleet

import (
	"container/list"
	"github.com/seed1158cd35/weir/limit"
	"time"
)

const (
	// mostPassing is how many keys without room are known, so that calls for one of them wait together. It
	// bounds their memory and store requests.
	mostPassing = 1000
	// passingKept is how long a key is known at least after its last use. So there are at most mostPassing keys
	// in that time.
	passingKept = time.Second
	// mostPassed is how many keys with waiting calls are skipped in one search for a key to drop.
	mostPassed = 16
)

// passing is the set of keys of a shared limit for which its registry has no room. It is guarded by the
// registry's lock.
type passing struct {
	byKey map[string]*list.Element
	used  list.List // of *passer; the most recently used is last
}

// A passer is the limiter of one such key.
type passer struct {
	key   string
	m     *limit.Limiter
	lease *lease
	at    time.Duration // of the last use
}

// Passing implements limit.Source. It returns a limiter for a key without room. The key must not be counted
// under another name, as it could then use the limit twice: another process may have room for it. So only the
// store counts the key. The limiter may be dropped at any time. It spends no units of this process's part,
// since that usage would be forgotten. A limiter beyond mostPassing is not kept and refuses everything that it
// does not hold.
func (s *source) Passing(now time.Duration, key string) *limit.Limiter {
	l := &s.passing
	if e := l.byKey[key]; e != nil {
		e.Value.(*passer).at = now
		l.used.MoveToBack(e)
		return e.Value.(*passer).m
	}
	p := s.lease(key)
	p.passing = true
	m := limit.NewLeased(p)
	if len(l.byKey) >= mostPassing && !l.evict(now) {
		p.crowdedOut = true
		return m
	}
	if l.byKey == nil {
		l.byKey = make(map[string]*list.Element)
	}
	l.byKey[key] = l.used.PushBack(&passer{key, m, p, now})
	return m
}

// evict drops a key that was not used for a while and for which no call waits.
func (l *passing) evict(now time.Duration) bool {
	for range mostPassed {
		e := l.used.Front()
		p := e.Value.(*passer)
		switch {
		case now < p.at+passingKept:
			return false
		case p.lease.waits.Load() == 0:
			l.forget(p.key)
			return true
		}
		p.at = now
		l.used.MoveToBack(e)
	}
	return false
}

// Forget implements limit.Source.
func (s *source) Forget(key string) { s.passing.forget(key) }

// forget drops a key, and marks its queues to be dropped.
func (l *passing) forget(key string) {
	if e := l.byKey[key]; e != nil {
		e.Value.(*passer).lease.evicted.Store(true)
		l.used.Remove(e)
		delete(l.byKey, key)
	}
}
