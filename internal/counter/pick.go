package counter

import _ "unsafe" // for go:linkname

// Pick returns the number of the cell to use, below Cells. It is the same for one core, and different
// between cores unless there are more of them than cells when the program starts. A goroutine may go on
// on another core at once, so cells must be atomic. It costs about 3 ns.
//
// The core is asked for by two functions of the runtime that Go promises to keep, as others rely on them
// (go.dev/issue/67401). What the standard library exports for it, an item that a sync.Pool hands back to
// the core that put it, takes five times as long, and is half of what there is to a count.
func Pick() int {
	core := procPin()
	procUnpin()
	return core & (Cells - 1)
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
