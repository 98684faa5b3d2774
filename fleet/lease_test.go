package fleet

import "github.com/seed1158cd35/weir/limit"

// room is how many keys a registry with a MaxKeys of 1 keeps.
const room = 4

// leaseOf returns the lease of a limiter.
func leaseOf(m *limit.Limiter) *lease { return m.Leased().(*lease) }

// sourceOf returns the source of a registry's limiters.
func sourceOf(r *limit.Registry) *source { return leaseOf(r.Get(0, "")).source }
