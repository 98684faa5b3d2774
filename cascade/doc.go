// Package cascade gets an answer from the best source that is available: a primary model, a second model, a cached
// answer, a static answer, or a message.
//
// A Cascade has the state of the tiers. It lives as long as the program and is shared by all calls. Run makes one call.
// It asks one tier after the other, each within its share of the time, until one answers. After failures, the breaker of
// a tier opens for a second. Then single calls probe the tier. As soon as one of them succeeds, all calls ask the tier
// again.
//
// A tier makes its own retries and has its own limits and breaker. It can, for example, be a call of weir.Do. The
// cascade only stores its health. If health differs between keys, for example between tenants with separate accounts,
// use one Cascade for each key.
package cascade
