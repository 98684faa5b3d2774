// Package buffers bounds the bytes that a process holds for its callers: request bodies that are read before they are sent,
// copies for retries, and tables that are derived from them. The bound applies to the process, as memory does.
package buffers

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Small is the largest body that does not wait for larger ones, which together can use at most half of a budget.
const Small = 1 << 20

// Reasons why memory was not available.
var (
	ErrTooLarge = errors.New("it is larger than weir's memory for bodies")
	ErrFull     = errors.New("weir's memory for bodies is full")
)

// A Budget is a number of bytes that may be held simultaneously. It is safe for concurrent use.
type Budget struct {
	total int64
	share int64 // bound of large bodies together

	mu     sync.Mutex
	used   int64
	large  int64 // part of used by large bodies
	stored int64 // part of used that is reserved for stored data
	line   []*waiter
	first  *Claim // claim that may exceed share, because its length was unknown
	most   int64  // maximum of used
	turned int64  // number of claims that got no memory in time
}

// newBudget returns a budget of which large bodies can use half.
func newBudget(total int64) *Budget { return &Budget{total: total, share: total / 2} }

// Total returns the size of the budget in bytes.
func (b *Budget) Total() int64 { return b.total }

// Use returns the used bytes, their maximum since the start, and the number of refusals.
func (b *Budget) Use() (used, most, turned int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.most, b.turned
}

// Take takes n bytes if they are free and no claim waits for them.
func (b *Budget) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > Small && len(b.line) > 0 || n > b.free(n > Small) {
		return false
	}
	b.take(n, n > Small)
	return true
}

// Spare takes n bytes for something optional, if half of the budget stays free. Copies of responses and large messages live as
// long as their reader chooses, and must not use the memory that other callers' bodies need.
func (b *Budget) Spare(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.total/2 || n > b.free(n > Small) {
		return false
	}
	b.take(n, n > Small)
	return true
}

// free returns the bytes available to a large or a small body. The caller holds the lock.
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

// Wait takes n bytes when they are free, in order of arrival, and gives up after patience.
func (b *Budget) Wait(ctx context.Context, n int64, patience time.Duration) error {
	return b.Claim(n, 0).Grow(ctx, n, patience)
}

// Store reserves n bytes of the budget, at most a quarter, for stored data such as caches. It replaces an earlier reservation
// and returns the reserved number.
func (b *Budget) Store(n int64) int64 {
	n = min(n, b.total/4)
	b.mu.Lock()
	b.used += n - b.stored
	b.stored, b.most = n, max(b.most, b.used)
	b.mu.Unlock()
	b.admit()
	return n
}

// Fits reports whether n bytes are free now. It returns ErrTooLarge if they never can be.
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

// Give returns n bytes that Take or Wait took.
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
