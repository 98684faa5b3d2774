package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// Peek returns the state of a key's limiter without making one. For an unknown key it is the state that a new limiter
// would have. It returns false if the state is unknown, because a fleet shares the limit and the store has not
// reported the key to this process.
func (r *Registry) Peek(now time.Duration, key string) (v Level, ok bool) {
	m := r.peek(key)
	if m == nil {
		return Level{}, false
	}
	v = m.Look(now)
	return v, v.Age < bucket.Never
}

// peek returns the limiter that a key has, or that a new one would equal; nil if only the store knows.
func (r *Registry) peek(key string) *Limiter {
	if key == "" {
		return r.single.Load()
	}
	if m := r.keys.get(key); m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := r.keys.get(key); {
	case m != nil, r.home != nil:
		return m
	}
	if m := r.other.Load(); m != nil { // the key would share this limiter, or begin empty
		return m
	}
	return r.fresh
}
