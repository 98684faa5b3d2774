package logs

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
)

// A kind identifies similar lines. Its parts are fixed values and names that policies declare, so there are few kinds.
type kind struct{ message, upstream, limit, why string }

// A sieve passes at most a number of lines of each kind per second. 0 passes all lines. A suppressed line costs a look-up, a
// load, and an addition in a counter of its core.
type sieve struct {
	most  int
	kinds *counter.Book[kind, *second]
}

func newSieve(most int) *sieve {
	return &sieve{most: most, kinds: counter.NewBook(new(sync.Mutex), func(kind) *second {
		return &second{suppressed: counter.NewEach[tally](), began: math.MinInt64 / 2}
	})}
}

// A second counts the lines of one second. It begins with the first line.
type second struct {
	full       atomic.Int64        // no line passes before this instant; 0 if lines pass
	suppressed counter.Each[tally] // since the last line that passed

	mu     sync.Mutex
	began  time.Duration
	passed int
}

// strange is the largest backward step of one clock. A larger step means another clock, because the upstream was recreated.
const strange = 2 * time.Second

type tally struct {
	n atomic.Int64
	_ counter.Pad
}

// pass reports whether a line may be written now, and the number of suppressed lines since the last that passed.
func (s *sieve) pass(now time.Duration, k kind) (suppressed int, ok bool) {
	if s.most <= 0 {
		return 0, true
	}
	return s.kinds.Get(k).pass(now, s.most)
}

// came counts n lines that were suppressed before they reached the sieve.
func (s *sieve) came(k kind, n int) {
	if s.most > 0 && n > 0 {
		s.kinds.Get(k).suppressed.Mine().n.Add(int64(n))
	}
}

// until returns the instant until which no line of a kind passes, 0 if lines pass.
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

// enter reports whether another line may pass in the current second, and counts it.
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

// left returns the number of suppressed lines and resets it.
func (at *second) left() (n int) {
	for cell := range at.suppressed.All() {
		n += int(cell.n.Swap(0))
	}
	return n
}
