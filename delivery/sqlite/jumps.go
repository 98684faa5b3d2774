package sqlite

import (
	"sync/atomic"
	"time"
)

// jumps are those of the clock on the wall, as told by how far it is ahead of the steady one.
// All in milliseconds.
type jumps struct {
	ahead atomic.Int64 // the furthest, since what waits was last looked through

	// of the writer's goroutine
	usual        int64 // how far the clock is ahead that deletes and expires
	moved        bool
	other, since int64 // how far it is ahead now, and the steady clock when that began
}

const (
	tolerated = time.Minute // how far the clock moves between two sweeps without being asked for reasons
	settled   = time.Hour   // for how long it must stand after it moved further
	noticed   = time.Second // how far back it is set to have what waits looked through
)

// start has the first sweep look through what waits: nobody saw the clock before.
func (j *jumps) start(ahead int64) {
	j.ahead.Store(1<<63 - 1)
	j.usual = ahead
}

func (j *jumps) see(ahead int64) {
	for was := j.ahead.Load(); ahead > was && !j.ahead.CompareAndSwap(was, ahead); was = j.ahead.Load() {
	}
}

// back reports whether the clock was further ahead than it is.
func (j *jumps) back(ahead int64) (was, is int64, ok bool) {
	was = j.ahead.Load()
	return was, ahead, ahead < was-noticed.Milliseconds()
}

// trust reports whether what is deleted or expires may go by the clock: one that jumped, perhaps
// for a moment, has to stand for a while before.
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
