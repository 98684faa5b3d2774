// Package recent computes the median of recent durations.
package recent

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// size is the number of stored durations. It is large enough for a stable median, and small enough that 16 slower durations
// change it.
const size = 31

// Durations are the latest 31 durations. The zero value is empty. It is safe for concurrent use and must not be copied.
type Durations struct {
	known atomic.Bool // median is current

	mu     sync.Mutex
	ring   [size]time.Duration
	n      int // total number of added durations
	median atomic.Int64
}

// Add stores a duration and removes the oldest.
func (r *Durations) Add(d time.Duration) {
	r.mu.Lock()
	r.ring[r.n%size] = max(d, 1)
	r.n++
	r.known.Store(false)
	r.mu.Unlock()
}

// Median returns the median of the stored durations, or 0 without any.
func (r *Durations) Median() time.Duration {
	if !r.known.Load() {
		r.find()
	}
	return time.Duration(r.median.Load())
}

func (r *Durations) find() {
	r.mu.Lock()
	defer r.mu.Unlock()
	sorted := r.ring
	if all := sorted[:min(r.n, size)]; len(all) > 0 {
		slices.Sort(all)
		r.median.Store(int64(all[len(all)/2]))
	}
	r.known.Store(true)
}
