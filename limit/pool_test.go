package limit

// poolOf is the pool behind a limiter.
func poolOf(m *Limiter) *pool { return m.Leased().(*pool) }

// sourceOf is what a registry gets its limiters from.
func sourceOf(r *Registry) *source { return poolOf(r.Get(0, "")).source }
