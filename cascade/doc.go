// Package cascade answers from the best source that can answer just now: a
// primary model, else a second one, else a cached answer, a static one, a
// message.
//
// A Cascade is what is known of the tiers; it lives as long as the program and is
// shared by all calls. Run makes one call: it asks tier after tier, each in its
// share of the time, until one answers. A tier that is asked in vain has a breaker
// that opens for a second; then one call after the other finds out whether it is
// back, and as soon as one was answered, all ask it again.
//
// A tier does its own retries, and has its own limits and breaker: it is, for
// example, a whole weir.Do. The cascade keeps nothing but its health. If health
// differs between keys (tenants with accounts of their own), keep a Cascade for
// each.
package cascade
