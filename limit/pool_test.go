package limit

// room is how many keys a registry keeps whose limit has a MaxKeys of 1.
const room = 4

// poolOf is the pool behind a limiter.
func poolOf(m *Limiter) *pool { return m.Leased().(*pool) }

// sourceOf is what a registry gets its limiters from.
func sourceOf(r *Registry) *source { return poolOf(r.Get(0, "")).source }
