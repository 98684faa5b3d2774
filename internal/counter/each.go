package counter

import (
	"iter"
	"sync/atomic"
)

// Each has a T for every cell, so that each core counts in a separate one. A T is created at the first use of its cell. T must
// be safe for concurrent use, also when zero, and should end with a Pad.
type Each[T any] struct{ cells []atomic.Pointer[T] }

// NewEach returns an empty Each.
func NewEach[T any]() Each[T] { return Each[T]{make([]atomic.Pointer[T], Cells)} }

// Mine returns the T to count in now; see Pick.
func (e *Each[T]) Mine() *T { return Made(&e.cells[Pick()]) }

// At returns the T of a cell; see Pick.
func (e *Each[T]) At(cell int) *T { return Made(&e.cells[cell]) }

// All returns the created Ts.
func (e *Each[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range e.cells {
			if t := e.cells[i].Load(); t != nil && !yield(t) {
				return
			}
		}
	}
}

// Made returns the value that p points to, and creates it if p is nil.
func Made[T any](p *atomic.Pointer[T]) *T {
	if t := p.Load(); t != nil {
		return t
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}
