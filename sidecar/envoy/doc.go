// Package envoy implements Envoy's global rate limit service (v3, over gRPC) on a fleet.Store, with rules in the
// configuration format of envoyproxy/ratelimit.
//
// A request is charged atomically: all its descriptors are charged in one store call, and if one is over its limit,
// none is charged. docs/how-to/use-envoy.md lists the other differences from that project's server.
package envoy
