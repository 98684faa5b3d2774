package logs

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
)

// A kind is what lines have in common that say the same. Its parts are weir's own
// words and names that policies declare, so there are few kinds.
type kind struct{ message, upstream, limit, why string }

// A sieve lets at most so many lines of a kind through in a second; 0 lets all through. What is
// left out costs a look-up, a load, and an addition in a cell of its core.
type sieve struct {
	most  int
	kinds *counter.Book[kind, *second]
}

func newSieve(most int) *sieve {
	return &sieve{most: most, kinds: counter.NewBook(new(sync.Mutex), func(kind) *second {
		return &second{suppressed: counter.NewEach[tally](), began: math.MinInt64 / 2}
	})}
}

// A second begins with the first line in it.
type second struct {
	full       atomic.Int64        // the instant until which no line passes any more; 0 if some do
	suppressed counter.Each[tally] // since the last line that passed

	mu     sync.Mutex
	began  time.Duration
	passed int
}

// strange is how far instants go back only if another clock tells them: that of an upstream that
// was made anew.
const strange = 2 * time.Second

type tally struct {
	n atomic.Int64
	_ counter.Pad
}

// pass reports whether a line may be written now, and how many were not since the
// last that was.
func (s *sieve) pass(now time.Duration, k kind) (suppressed int, ok bool) {
	if s.most <= 0 {
		return 0, true
	}
	return s.kinds.Get(k).pass(now, s.most)
}

// came notes n that came and are not to pass.
func (s *sieve) came(k kind, n int) {
	if s.most > 0 && n > 0 {
		s.kinds.Get(k).suppressed.Mine().n.Add(int64(n))
	}
}

// until is the instant until which no line of a kind passes any more; 0 if some do.
func (s *sieve) until(k kind) time.Duration {
	if s.most <= 0 {
		return 0
	}
	return time.Duration(s.kinds.Get(k).full.Load())
}

func (at *second) pass(now time.Duration, most int) (suppressed int, ok bool) {
	if ahead := time.Duration(at.full.Load()) - now; (ahead <= 0 || ahead > strange) && at.enter(now, most) {
		return at.left(), true
	}
	at.suppressed.Mine().n.Add(1)
	return 0, false
}

// enter takes one of the lines that pass in the second, if one is left.
func (at *second) enter(now time.Duration, most int) bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	if since := now - at.began; since >= time.Second || since < -strange {
		at.began, at.passed = now, 0
	}
	if at.passed == most {
		return false
	}
	if at.passed++; at.passed == most {
		at.full.Store(int64(at.began + time.Second))
	}
	return true
}

// left is how many were suppressed, of which the next line no longer tells.
func (at *second) left() (n int) {
	for cell := range at.suppressed.All() {
		n += int(cell.n.Swap(0))
	}
	return n
}
