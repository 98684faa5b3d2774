package fleet

import "time"

// A quickest is the least time that an ask took of late, there and back. Whoever is told to
// ask again after a wait asks earlier by so much: the wait was counted at the store, and by the time
// the next ask arrives there at least so much has passed. So it arrives when there is
// something, and hardly later, and a limit whose burst holds one call loses none of it.
type quickest struct {
	since     time.Duration
	now, last time.Duration // 0 if there was none
}

// quickMemory is for how long the least time of an ask is remembered at least, and twice that at most.
const quickMemory = 10 * time.Second

// note notes an ask that took so long, there and back. What is older than quickMemory counts no more when as
// much has passed again.
func (q *quickest) note(at, took time.Duration) {
	if past := at - q.since; past >= quickMemory {
		if q.since, q.last, q.now = at, q.now, 0; past >= 2*quickMemory {
			q.last = 0
		}
	}
	if took = max(1, took); q.now == 0 || took < q.now {
		q.now = took
	}
}

// least is 0 if nothing is known.
func (q *quickest) least() time.Duration {
	if q.now == 0 || q.last != 0 && q.last < q.now {
		return q.last
	}
	return q.now
}
