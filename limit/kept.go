package limit

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A kept is a list of places that are used before those of the line. The list is replaced as a whole, and is nil when
// empty, so that decisions take the short path.
type kept struct {
	atomic.Pointer[bucket.Returned]
}

// put adds places. The list is bounded. When it is full, the two closest entries are merged at the value of the lower
// one (bucket.Returned.Add), so that no limit is exceeded.
func (k *kept) put(t bucket.Turn) {
	for {
		old := k.Load()
		next := bucket.Returned{t}
		if old != nil {
			next = old.Add(t)
		}
		if k.CompareAndSwap(old, &next) {
			return
		}
	}
}

// left returns how many of the places may be used at the position at, with a burst that begins at low, both in places
// of the bucket's axis. It removes a list that the burst has passed completely.
func (k *kept) left(at, low int64) int64 {
	old := k.Load()
	if old == nil {
		return 0
	}
	left := old.Left(at, low)
	if left == 0 && old.Passed(low) {
		k.CompareAndSwap(old, nil)
	}
	return left
}

// take takes at most cost of the places, within these bounds.
func (k *kept) take(at, low, cost int64) bucket.Turn {
	for {
		old := k.Load()
		if old == nil || old.Left(at, low) == 0 {
			return bucket.Turn{}
		}
		rest, got := old.Take(at, low, cost)
		if k.swap(old, rest) {
			return got
		}
	}
}

// pull removes the stretch that ends at the place; false if there is none.
func (k *kept) pull(place int64) (bucket.Turn, bool) {
	for {
		old := k.Load()
		if old == nil {
			return bucket.Turn{}, false
		}
		rest, got, ok := old.Touching(place)
		if !ok {
			return bucket.Turn{}, false
		}
		if k.swap(old, rest) {
			return got, true
		}
	}
}

// swap replaces a list. An empty list is nil.
func (k *kept) swap(old *bucket.Returned, rest bucket.Returned) bool {
	if len(rest) == 0 {
		return k.CompareAndSwap(old, nil)
	}
	return k.CompareAndSwap(old, &rest)
}
