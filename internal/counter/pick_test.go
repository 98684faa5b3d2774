package counter

import (
	"runtime"
	"testing"
)

func TestACoreHasOneCell(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the goroutine does not move to another core
	cell := Pick()
	for range 1000 {
		if got := Pick(); got != cell || got < 0 || got >= Cells {
			t.Fatalf("cell %d and then %d, of %d", cell, got, Cells)
		}
	}
}

func TestMoreCoresThanCellsShareThem(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * Cells))
	picked := make(chan int)
	for range 4 * Cells {
		go func() { picked <- Pick() }()
	}
	for range 4 * Cells {
		if got := <-picked; got < 0 || got >= Cells {
			t.Errorf("cell %d of %d", got, Cells)
		}
	}
}
