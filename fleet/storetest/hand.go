package storetest

import (
	"sync"
	"time"
)

// A Hand is a clock that the test moves, for stores that are Driven. It is safe for concurrent use.
type Hand struct {
	mu sync.Mutex
	t  time.Time
}

// NewHand returns a clock set to a microsecond before an hour begins, on a day on which some time zones change
// their offset.
func NewHand() *Hand { return &Hand{t: time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC)} }

// Now returns the time of the clock.
func (h *Hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.t
}

// Advance moves the clock by d, which may be negative.
func (h *Hand) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t = h.t.Add(d)
}
