// Package buffers bounds the bytes that a process holds for its callers: bodies that are
// read before they are sent on, what is kept of them to be sent again, and tables that are made
// of them. The bound is of the process, as memory is.
package buffers

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Small is a body that waits for no larger one: those may not have more than half of a
// budget together.
const Small = 1 << 20

// Why there is no room.
var (
	ErrTooLarge = errors.New("it is larger than what weir may hold in memory")
	ErrFull     = errors.New("what weir may hold in memory is full")
)

// A Budget is a number of bytes that may be held at once. It is safe for concurrent use.
type Budget struct {
	total int64
	share int64 // of those that are not small, together

	mu     sync.Mutex
	used   int64
	large  int64 // of used, by those that are not small
	line   []*waiter
	most   int64 // used, ever
	turned int64 // those for whom there was no room in time
}

type waiter struct {
	n     int64
	ready chan struct{}
	in    bool // it has its bytes
}

// New makes a budget, of which those that are not small may have half together.
func New(total int64) *Budget { return &Budget{total: total, share: total / 2} }

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
	if n > Small && len(b.line) > 0 || !b.fits(n) {
		return false
	}
	b.take(n)
	return true
}

// fits reports whether there is room. The lock is held.
func (b *Budget) fits(n int64) bool {
	return b.used+n <= b.total && (n <= Small || b.large+n <= b.share)
}

func (b *Budget) take(n int64) {
	b.used += n
	if b.most = max(b.most, b.used); n > Small {
		b.large += n
	}
}

// Wait takes n bytes when there is room, in turn, and gives up after a while.
func (b *Budget) Wait(ctx context.Context, n int64, patience time.Duration) error {
	if n > Small && n > b.share || n > b.total {
		b.refused()
		return ErrTooLarge
	}
	if b.Take(n) {
		return nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	b.mu.Lock()
	b.line = append(b.line, w)
	b.mu.Unlock()
	b.admit()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-w.ready:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	if b.leave(w) {
		return nil
	}
	b.refused()
	return ErrFull
}

func (b *Budget) refused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned++
}

// leave takes a waiter out of the line, and reports whether it had its turn meanwhile.
func (b *Budget) leave(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, o := range b.line {
		if o == w {
			b.line = append(b.line[:i], b.line[i+1:]...)
			break
		}
	}
	return w.in
}

// admit gives those who wait what there is: the small ones whenever they fit, the large ones in
// their order.
func (b *Budget) admit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest, held := b.line[:0], false
	for _, w := range b.line {
		if w.n > Small && held || !b.fits(w.n) {
			held = held || w.n > Small
			rest = append(rest, w)
			continue
		}
		b.take(w.n)
		w.in = true
		close(w.ready)
	}
	clear(b.line[len(rest):])
	b.line = rest
}

// Give gives n bytes back, as they were taken.
func (b *Budget) Give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	if b.used -= n; n > Small {
		b.large -= n
	}
	waits := len(b.line) > 0
	b.mu.Unlock()
	if waits {
		b.admit()
	}
}

// none is the budget of a process without a limit of memory.
const none = 256 << 20

// Bodies is the budget of this process for what it holds of bodies: a quarter of its memory. Tables is that for
// what is made of them while they are read, an eighth.
var (
	limit  = Limit()
	Bodies = New(part(4))
	Tables = &Budget{total: part(8), share: part(8)}
)

func part(of int64) int64 {
	if limit == math.MaxInt64 {
		return none * 4 / of
	}
	return limit / of
}

// Limit is the memory that this process may use: GOMEMLIMIT, or that of its cgroup; the
// largest number if there is none.
func Limit() int64 {
	most := debug.SetMemoryLimit(-1)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < 1<<50 {
			most = min(most, n)
		}
	}
	return most
}

// Heed has the garbage collector heed the limit, that of the cgroup, too. A quarter is left for what is
// not on the heap: the program itself among others.
func Heed() {
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}
