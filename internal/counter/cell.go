// Package counter counts what many cores do at once. A counter that
// all of them write costs a cache line's journey between cores each time;
// one cell per core costs none.
package counter

import "runtime"

// Cells is how many cells a sharded structure should have: a power of two, at
// least one per core that may run Go code when the program starts.
var Cells = func() int {
	n := 1
	for n < 4*runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return n
}()

// A Pad is padding that keeps what stands before and after it on cache lines
// of their own.
type Pad [128]byte
