// Package breakers makes one breaker of those that many processes have for the same
// upstream: what trips one trips all, one call in the whole fleet probes, and the
// fleet agrees on what it found.
//
// No call waits for the store. Each process keeps its breakers as before, and a
// loop beside them carries changes to the store and back: its own at once, those of
// others within two seconds. When the store cannot be reached every breaker decides
// for itself, as though there were no fleet.
//
// # What the rules of a breaker.Config mean for a fleet
//
// Failures within Window are those of the whole fleet: the processes add theirs up
// in the store, and whoever's makes the sum reach Failures opens the breaker for
// all. Fifty processes that see one failure each make fifty. So a fleet needs a
// larger number than one process.
//
// Consecutive and Share need the successes too, which nobody tells the store:
// there are too many of them. Each process judges its own calls by these rules,
// and the first that trips trips all. One process whose own network is broken can
// therefore open the breaker of the fleet; it closes when another's probe succeeds.
//
// All processes should have the same Config. While they differ, each goes by its
// own; who opens a breaker says for how long.
package breakers
