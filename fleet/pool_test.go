package fleet

import "github.com/seed1158cd35/weir/limit"

// room is how many keys a registry keeps whose limit has a MaxKeys of 1.
const room = 4

// poolOf is the pool behind a limiter.
func poolOf(m *limit.Limiter) *pool { return m.Leased().(*pool) }

// sourceOf is what a registry gets its limiters from.
func sourceOf(r *limit.Registry) *source { return poolOf(r.Get(0, "")).source }
