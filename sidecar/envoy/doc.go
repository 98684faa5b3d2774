// Package envoy answers Envoy's global rate limit service (v3, over gRPC) from a
// fleet.Store, with rules in the configuration format of envoyproxy/ratelimit.
//
// A request is all or none: its descriptors are charged together, in one call of
// the store, and one that is over its limit leaves the others as they were. What
// else differs from that project's server stands in docs/how-to/use-envoy.md.
package envoy
