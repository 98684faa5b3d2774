// Package recent remembers how long something took lately.
package recent

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// size is how many durations are remembered: enough for a median that is no accident,
// few enough that what has become slow is known for slow after 16 more.
const size = 31

// Durations are the latest 31 of them. The zero value has none; it is safe for concurrent
// use and must not be copied.
type Durations struct {
	known atomic.Bool // median is that of the ring

	mu     sync.Mutex
	ring   [size]time.Duration
	n      int // that were ever added
	median atomic.Int64
}

// Add remembers one, in place of the oldest.
func (r *Durations) Add(d time.Duration) {
	r.mu.Lock()
	r.ring[r.n%size] = max(d, 1)
	r.n++
	r.known.Store(false)
	r.mu.Unlock()
}

// Median is the middle of those that are remembered; 0 if there are none.
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
