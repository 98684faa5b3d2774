// Package recovery plays upstreams that stand still, lose half of their workers or are
// merely slow, with callers who leave, on weir as it ships: in virtual time through
// weir.Transport, and in real time through weir serve. docs/recovery.md says what came
// out. Its tests alone do anything: -full plays 20 seeds, -real plays in real time.
package recovery
