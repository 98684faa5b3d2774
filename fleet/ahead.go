package fleet

import "time"

// A quickest is the shortest recent round trip of a request. A process that has to wait repeats its request
// earlier by that much. The store counted the wait from its response, so the request arrives when the wait has
// just ended. A limit with a burst of one call then loses no call.
type quickest struct {
	since     time.Duration
	now, last time.Duration // 0 if there was none
}

// quickMemory is how long the shortest round trip is remembered, at least. The maximum is twice that.
const quickMemory = 10 * time.Second

// note records a round trip. The periods are quickMemory long: a value counts in its own period and the next
// one.
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

// least returns the shortest recent round trip, and 0 if there is none.
func (q *quickest) least() time.Duration {
	if q.now == 0 || q.last != 0 && q.last < q.now {
		return q.last
	}
	return q.now
}
