package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A partsHeld is which parts a process has held, so that it can use, of a limit that counts
// what went in a window, no more than the least that it held for all of the window: parts
// that have changed hands must not be spent twice in one.
type partsHeld struct {
	now  int64  // held at present
	past []held // smaller ones before it, each smaller than what follows
}

// held is a part that was held until an instant.
type held struct {
	part  int64
	until time.Duration
}

// mostKept is how many smaller parts are remembered; of more the last two count as the smaller one of both.
const mostKept = 32

// note is that another part is held from now on.
func (r *partsHeld) note(now time.Duration, part int64) {
	if part > r.now {
		r.past = append(r.past, held{r.now, now})
	}
	r.now = part
	for n := len(r.past); n > 0 && r.past[n-1].part >= part; n-- {
		r.past = r.past[:n-1]
	}
	if n := len(r.past); n > mostKept { // the last two become one
		r.past[n-2].until = r.past[n-1].until
		r.past = r.past[:n-1]
	}
}

// least is the smallest part that was held since an instant.
func (r *partsHeld) least(from time.Duration) int64 {
	for _, h := range r.past {
		if h.until > from {
			return h.part
		}
	}
	return r.now
}

// next is until when the smallest part was held that counts from an instant on; Never if
// it still is.
func (r *partsHeld) next(from time.Duration) time.Duration {
	for _, h := range r.past {
		if h.until > from {
			return h.until
		}
	}
	return bucket.Never
}
