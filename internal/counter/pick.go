package counter

import _ "unsafe" // for go:linkname

// Pick returns the number of the cell to use, below Cells. It depends on the core: different cores have different cells unless
// there are more cores than cells. A goroutine can move to another core at any time, so cells must be atomic. Pick takes about
// 3 ns.
//
// It uses two functions of the runtime that Go promises to keep, because other packages use them (go.dev/issue/67401). The
// exported alternative, an item in a sync.Pool, takes five times as long and would be half of the cost of a count.
func Pick() int {
	core := procPin()
	procUnpin()
	return core & (Cells - 1)
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
