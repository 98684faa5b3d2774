package counter

import (
	"iter"
	"sync/atomic"
)

// Each has a T for every cell: what a core counts, it counts in its own. A T is made when its
// cell is first used. T must be safe for concurrent use, zero or not, and should end with a Pad.
type Each[T any] struct{ cells []atomic.Pointer[T] }

// NewEach makes an Each in which nothing is counted.
func NewEach[T any]() Each[T] { return Each[T]{make([]atomic.Pointer[T], Cells)} }

// Mine is the T to count in now; see Pick.
func (e *Each[T]) Mine() *T { return Made(&e.cells[Pick()]) }

// At is the T of a cell; see Pick.
func (e *Each[T]) At(cell int) *T { return Made(&e.cells[cell]) }

// All are those that were made.
func (e *Each[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range e.cells {
			if t := e.cells[i].Load(); t != nil && !yield(t) {
				return
			}
		}
	}
}

// Made is what p points to, which is made if p is nil.
func Made[T any](p *atomic.Pointer[T]) *T {
	if t := p.Load(); t != nil {
		return t
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}
