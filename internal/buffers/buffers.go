// Package buffers bounds the bytes that a process holds for its callers: bodies that are
// read before they are sent on, what is kept of them to be sent again, and tables that are made
// of them. The bound is of the process, as memory is.
package buffers

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Small is a body that waits for no larger one: those may not have more than half of a
// budget together.
const Small = 1 << 20

// Why there is no room.
var (
	ErrTooLarge = errors.New("it is larger than weir's memory for bodies")
	ErrFull     = errors.New("weir's memory for bodies is full")
)

// A Budget is a number of bytes that may be held at once. It is safe for concurrent use.
type Budget struct {
	total int64
	share int64 // of those that are not small, together

	mu     sync.Mutex
	used   int64
	large  int64 // of used, by those that are not small
	stored int64 // of used, set aside for what is stored
	line   []*waiter
	first  *Claim // that may have more than the share, as its length was not known
	most   int64  // used, ever
	turned int64  // those for whom there was no room in time
}

// newBudget makes a budget, of which those that are not small may have half together.
func newBudget(total int64) *Budget { return &Budget{total: total, share: total / 2} }

// Total is what may be held.
func (b *Budget) Total() int64 { return b.total }

// Use is what is held, the most that ever was, and how many found no room.
func (b *Budget) Use() (used, most, turned int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.most, b.turned
}

// Take takes n bytes if there is room and nobody waits for it.
func (b *Budget) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > Small && len(b.line) > 0 || n > b.free(n > Small) {
		return false
	}
	b.take(n, n > Small)
	return true
}

// Spare takes n bytes for something that weir can do without, if half of the budget stays free. Copies of answers and large
// messages live as long as their reader likes: it cannot take the memory that bodies of other callers need.
func (b *Budget) Spare(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.total/2 || n > b.free(n > Small) {
		return false
	}
	b.take(n, n > Small)
	return true
}

// free is what there is for one that is large or small. The lock is held.
func (b *Budget) free(large bool) int64 {
	if large {
		return min(b.total-b.used, b.share-b.large)
	}
	return b.total - b.used
}

func (b *Budget) take(n int64, large bool) {
	b.used += n
	if b.most = max(b.most, b.used); large {
		b.large += n
	}
}

// Wait takes n bytes when there is room, in turn, and gives up after a while.
func (b *Budget) Wait(ctx context.Context, n int64, patience time.Duration) error {
	return b.Claim(n, 0).Grow(ctx, n, patience)
}

// Store sets aside so much of the budget for what is stored, such as caches, in place of what was before: a
// quarter at most. It returns how much that is.
func (b *Budget) Store(n int64) int64 {
	n = min(n, b.total/4)
	b.mu.Lock()
	b.used += n - b.stored
	b.stored, b.most = n, max(b.most, b.used)
	b.mu.Unlock()
	b.admit()
	return n
}

// Fits reports whether n bytes could be taken now, and ErrTooLarge if they never can.
func (b *Budget) Fits(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n > b.total || n > Small && n > b.share:
		return ErrTooLarge
	case n > b.free(n > Small):
		return ErrFull
	}
	return nil
}

// Give gives n bytes back, as Take or Wait took them.
func (b *Budget) Give(n int64) {
	if n != 0 {
		b.give(n, n > Small)
	}
}

func (b *Budget) give(n int64, large bool) {
	b.mu.Lock()
	if b.used -= n; large {
		b.large -= n
	}
	waits := len(b.line) > 0
	b.mu.Unlock()
	if waits {
		b.admit()
	}
}
