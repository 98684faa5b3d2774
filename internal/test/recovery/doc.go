// Package recovery plays upstreams that stand still, lose half of their workers or are
// merely slow, with callers who leave, on weir as it ships: in virtual time through
// httpx.Transport and through the sidecar that weir serve makes of a file, and in real time
// through weir serve. bench/records/recovery.md has the results.
//
// Its tests alone do anything. -full plays all with 20 seeds, -seeds N with N, WEIR_LONG=1
// in the environment all of them, many with fewer; -real plays a stall in real time.
package recovery
