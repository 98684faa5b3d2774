package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// Peek is what the limiter of a key looks like, and makes none: of a key that is not known, what one would look
// like. It reports false if that is not known here, as a fleet shares the limit and its store has not spoken of
// the key to this process.
func (r *Registry) Peek(now time.Duration, key string) (v Level, ok bool) {
	m := r.peek(key)
	if m == nil {
		return Level{}, false
	}
	v = m.Look(now)
	return v, v.Age < bucket.Never
}

// peek is the limiter that a key has or would be a twin of; nil if that is made elsewhere.
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
	if m := r.other.Load(); m != nil { // the key would be one of those that share it, or begin empty
		return m
	}
	return r.fresh
}
