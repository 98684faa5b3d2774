package sqlite

import (
	"sync/atomic"
	"time"
)

// jumps detects jumps of the wall clock from its lead over the monotonic clock. All values are in milliseconds.
type jumps struct {
	ahead atomic.Int64 // the largest lead since the waiting deliveries were last checked

	// Used only by the writer's goroutine.
	usual        int64 // the lead that is trusted for deletion and expiry
	moved        bool
	other, since int64 // a different lead, and the monotonic time at which it was first seen
}

const (
	tolerated = time.Minute // the largest change between two sweeps that is trusted immediately
	settled   = time.Hour   // how long a larger change must persist before it is trusted
	noticed   = time.Second // the smallest backward change that causes a check of waiting deliveries
)

// start makes the first sweep check the waiting deliveries, because earlier jumps of the clock are unknown.
func (j *jumps) start(ahead int64) {
	j.ahead.Store(1<<63 - 1)
	j.usual = ahead
}

func (j *jumps) see(ahead int64) {
	for was := j.ahead.Load(); ahead > was && !j.ahead.CompareAndSwap(was, ahead); was = j.ahead.Load() {
	}
}

// back reports whether the wall clock had a larger lead before.
func (j *jumps) back(ahead int64) (was, is int64, ok bool) {
	was = j.ahead.Load()
	return was, ahead, ahead < was-noticed.Milliseconds()
}

// trust reports whether deletion and expiry may use the wall clock. After a jump, which may be temporary, the clock
// must be stable for a while first.
func (j *jumps) trust(ahead, steady int64) bool {
	if near(ahead, j.usual) {
		j.usual, j.moved = ahead, false
		return true
	}
	if !j.moved || !near(ahead, j.other) {
		j.moved, j.other, j.since = true, ahead, steady
	}
	if steady-j.since < settled.Milliseconds() {
		return false
	}
	j.usual, j.moved = ahead, false
	return true
}

func near(a, b int64) bool { return max(a-b, b-a) <= tolerated.Milliseconds() }
