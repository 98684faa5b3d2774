package fleet

import (
	"container/list"
	"github.com/seed1158cd35/weir/limit"
	"time"
)

const (
	// mostPassing is how many keys for which there is no room are known nevertheless, so that those who
	// wait for one of them wait together. It bounds what they cost: memory, and asks of the store.
	mostPassing = 1000
	// passingKept is for how long a key is known at least after it was used. So there are
	// mostPassing others within it at most.
	passingKept = time.Second
	// mostPassed is how many keys for which somebody waits are passed over at once to find one to forget.
	mostPassed = 16
)

// passing is the keys for which there is no room, of a limit that a fleet shares; guarded by
// the registry's lock.
type passing struct {
	byKey map[string]*list.Element
	used  list.List // of *passer; who was used last is the last
}

// A passer is a limiter of one such key.
type passer struct {
	key   string
	m     *limit.Limiter
	lease *lease
	at    time.Duration // when it was used last
}

// Passing is Source's, a limiter of a key for which there is no room, of a limit that a fleet shares. Under another
// name the key could have as much again, as another process has room for it. So only the store knows of
// the key: the limiter may be forgotten at any time, and takes nothing of this process's part, as what was taken of
// that would be forgotten, too. One that is above the bound is not kept, and refuses all that it has not got.
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

// evict forgets a key that was not used for a while, and for which nobody waits.
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

// Forget is Source's.
func (s *source) Forget(key string) { s.passing.forget(key) }

// forget lets the queues of a key go with it.
func (l *passing) forget(key string) {
	if e := l.byKey[key]; e != nil {
		e.Value.(*passer).lease.evicted.Store(true)
		l.used.Remove(e)
		delete(l.byKey, key)
	}
}
