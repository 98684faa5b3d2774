package fleet

import "github.com/seed1158cd35/weir/limit"

// room is how many keys a registry keeps whose limit has a MaxKeys of 1.
const room = 4

// leaseOf is the lease behind a limiter.
func leaseOf(m *limit.Limiter) *lease { return m.Leased().(*lease) }

// sourceOf is what a registry gets its limiters from.
func sourceOf(r *limit.Registry) *source { return leaseOf(r.Get(0, "")).source }
