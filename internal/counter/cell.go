// Package counter counts what many cores do at once. A counter that
// all of them write costs a cache line's journey between cores each time;
// one cell per core costs none.
package counter

import (
	"runtime"
	"sync"
	"sync/atomic"
)

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

var (
	next atomic.Uint32
	// A pool hands an item back to the core that put it, which is what makes
	// the pick stick to a core. Losing an item to the garbage collector only
	// means that the core gets another number.
	picks = sync.Pool{New: func() any { return new((next.Add(1) - 1) & uint32(Cells-1)) }}
)

// Pick returns the number of the cell to use, below Cells. It is usually the
// same for one core and different between cores, but two cores may share a
// cell, so cells must be atomic. It costs about 8 ns.
func Pick() int {
	p := picks.Get().(*uint32)
	i := int(*p)
	picks.Put(p)
	return i
}
