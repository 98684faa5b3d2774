// Package counter counts events on many cores. If all cores write one counter, each write moves its cache line between cores.
// With one cell per core it does not.
package counter

import "runtime"

// Cells is the number of cells of a sharded structure: a power of two, and at least one per core that could run Go code at the
// start.
var Cells = func() int {
	n := 1
	for n < 4*runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return n
}()

// A Pad separates the fields before and after it into different cache lines.
type Pad [128]byte
