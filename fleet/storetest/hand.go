package storetest

import (
	"sync"
	"time"
)

// A Hand is a clock that a test moves: for stores that are Driven. It is safe for concurrent use.
type Hand struct {
	mu sync.Mutex
	t  time.Time
}

// NewHand makes a clock that stands a microsecond before an hour begins, on a day on which some zones change their time.
func NewHand() *Hand { return &Hand{t: time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC)} }

// Now is where the clock stands.
func (h *Hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.t
}

// Advance moves the clock by d, which may be below 0.
func (h *Hand) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t = h.t.Add(d)
}
