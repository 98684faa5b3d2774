package limit

import "time"

// Known returns the limiter of a key, without making one; nil if the key has no limiter.
func (r *Registry) Known(key string) *Limiter {
	if key == "" {
		return r.single.Load()
	}
	return r.keys.get(key)
}

// Give returns up to n spent units of a budget to the present window, and returns their number. Units that calls in flight
// hold are not spent, so the remainder never exceeds what it would be without the spent units. Waiting calls are not woken:
// the caller must wake their queue. It returns false, and changes nothing, if the limit is no budget, if the key is unknown,
// or if a fleet shares the limit.
func (r *Registry) Give(now time.Duration, key string, n int64) (given int64, ok bool) {
	for {
		m := r.Known(key)
		if m == nil || r.home != nil {
			return 0, false
		}
		b, ok := m.shape().(*budget)
		if !ok {
			return 0, false
		}
		if given, gone := b.give(now, n); !gone {
			return given, true
		}
	}
}

// give reports gone if the limiter was replaced.
func (b *budget) give(now time.Duration, n int64) (given int64, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	free, held := b.level(now)
	n = min(n, b.shape.look(now).Full-free-held)
	if gone = b.shape.retired(); gone || n <= 0 {
		return 0, gone
	}
	switch x := b.shape.(type) {
	case *byCalendar:
		given = x.give(now, n)
	case *rolling:
		x.mu.Lock()
		defer x.mu.Unlock()
		given = x.log.Give(now, n)
	}
	return given, false
}

// give returns n units of the present window. It returns none if the usage of the window is not known.
func (x *byCalendar) give(now time.Duration, n int64) (given int64) {
	x.change(now, func(next *window) bool {
		used := next.used.Load()
		if given = min(n, used); used >= mostUsed {
			given = 0
		}
		next.used.Store(used - given)
		return given > 0
	})
	return given
}
