// Package recovery simulates upstreams that stall, lose half of their workers or are slow, with callers that disconnect. It
// runs weir as released, in virtual time: through httpx.Transport, and through the sidecar with a configuration file.
// bench/records/recovery.md has the results.
//
// It has only tests. -full runs all scenarios with 20 seeds, -seeds N with N, and WEIR_LONG=1 in the environment runs all, many
// with fewer seeds. -real plays the stories of weir sim also in real time, through weir serve.
package recovery
