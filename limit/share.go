package limit

import "time"

// Other is the key under which All lists the limiter of the keys for which there
// was no room.
const Other = "(other)"

// sharing is the limiter of the keys for which there is no room.
func (r *Registry) sharing() *Limiter {
	if r.other.Load() == nil {
		r.other.Store(r.fresh.twin())
	}
	return r.other.Load()
}

// mostPassing is how many keys for which there is no room are known nevertheless, so that those who
// wait for one of them wait together.
const mostPassing = 256

// passes is a limiter of a key for which there is no room, of a limit that a fleet shares. Under another
// name the key could have as much again, as another process has room for it. So only the store knows of
// the key: the limiter may be forgotten at any time, and takes nothing of this process's part, as what was taken of
// that would be forgotten, too.
func (r *Registry) passes(key string) *Limiter {
	m := r.passing[key]
	if m != nil {
		return m
	}
	if r.passing == nil {
		r.passing = make(map[string]*Limiter)
	}
	for old := range r.passing {
		if len(r.passing) < mostPassing {
			break
		}
		delete(r.passing, old) // any one
	}
	m = r.pooled(key)
	m.pool().passing = true
	r.passing[key] = m
	return m
}

// part keeps a new limiter from giving again what its key may have taken while it
// shared one: unless that is full, the new one is empty, and owes what those who
// wait are still to use. Whoever still holds the shared one is refused.
func (r *Registry) part(now time.Duration, m *Limiter) {
	other := r.other.Load()
	if other == nil {
		return
	}
	if other.retire(now) {
		r.other.Store(nil)
		return
	}
	paused := other.Look(now).Paused
	heir, owed := other.close(now)
	r.other.Store(heir)
	m.drain(now)
	m.assume(now, other, owed)
	m.Pause(now, now+paused)
}
