package limit

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// kept is places that are to be given, or paid for, before those of the line: a list that is replaced as
// a whole, nil while it is empty, so that decisions take the short path.
type kept struct {
	atomic.Pointer[bucket.Returned]
}

// put keeps places for whoever comes next. The list is bounded: where it is full the two that are closest
// become one, worth what the lower of them is (bucket.Returned.Add), so that no limit is passed for it.
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

// left is how many of the places may be used when the line has reached at and the burst begins at low, both
// in places of the bucket's axis. It throws the list away when the burst has passed all of it.
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

// take takes up to so many of the places, at these limits of the burst.
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

// pull takes out the stretch that ends at the place; false if there is none.
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

// swap puts a list in the place of another; an empty one is nil.
func (k *kept) swap(old *bucket.Returned, rest bucket.Returned) bool {
	if len(rest) == 0 {
		return k.CompareAndSwap(old, nil)
	}
	return k.CompareAndSwap(old, &rest)
}
