package limit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/limittest"
)

func TestMemory(t *testing.T) {
	m := limit.NewMemory(nil)
	limittest.TestStore(t, func(testing.TB) limit.Store { return m }, limittest.Hammer(time.Second))
}

func TestMemoryDriven(t *testing.T) {
	c := newHand()
	m := limit.NewMemory(c.now)
	limittest.TestStore(t, func(testing.TB) limit.Store { return m }, limittest.Driven(c.advance))
}

// A hand is a clock that a test moves.
type hand struct {
	mu sync.Mutex
	t  time.Time
}

func newHand() *hand { return &hand{t: time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC)} }

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.t
}

func (h *hand) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t = h.t.Add(d)
}
