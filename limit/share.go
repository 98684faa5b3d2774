package limit

import "time"

// Other is the key under which All lists the shared limiter of the keys beyond the maximum.
const Other = "(other)"

// sharing returns the limiter that keys beyond the maximum share.
func (r *Registry) sharing() *Limiter {
	if r.other.Load() == nil {
		r.other.Store(twin(r.fresh))
	}
	return r.other.Load()
}

// part prevents a key from using units twice when it leaves the shared limiter for a new one. If the shared limiter
// is not full, the new one starts empty, with a debt for the units that waiting calls are still to use. Callers that
// hold the old shared limiter are refused.
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
