package limit

import "time"

// Other is the key under which All lists the limiter of the keys for which there
// was no room.
const Other = "(other)"

// sharing is the limiter of the keys for which there is no room.
func (r *Registry) sharing() *Limiter {
	if r.other.Load() == nil {
		r.other.Store(twin(r.fresh))
	}
	return r.other.Load()
}

// part keeps a new limiter from giving again what its key may have taken while it
// shared one: unless that is full, the new one is empty, and owes what those who
// wait are still to use. Whoever still holds the shared one is refused.
func (r *Registry) part(now time.Duration, m *Limiter) {
	other := r.other.Load()
	if other == nil {
		return
	}
	if other.shape().retire(now) {
		r.other.Store(nil)
		return
	}
	paused := other.Look(now).Paused
	heir, owed := other.shape().close(now)
	r.other.Store(heir)
	m.shape().empty(now)
	assume(now, m, other, owed)
	m.Pause(now, now+paused)
}
