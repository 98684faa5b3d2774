package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A partsHeld records the parts that a process has held. Of a limit that counts in a window, the process may
// use the smallest part that it held during the complete window. Otherwise a part that has moved between
// processes could be spent twice in one window.
type partsHeld struct {
	now  int64  // the current part
	past []held // earlier, smaller parts, each smaller than the next one
}

// held is a part that was held until an instant.
type held struct {
	part  int64
	until time.Duration
}

// mostKept is how many smaller parts are remembered. If there are more, the last two count as the smaller of
// both.
const mostKept = 32

// note records that another part is held from now on.
func (r *partsHeld) note(now time.Duration, part int64) {
	if part > r.now {
		r.past = append(r.past, held{r.now, now})
	}
	r.now = part
	for n := len(r.past); n > 0 && r.past[n-1].part >= part; n-- {
		r.past = r.past[:n-1]
	}
	if n := len(r.past); n > mostKept { // merge the last two
		r.past[n-2].until = r.past[n-1].until
		r.past = r.past[:n-1]
	}
}

// least returns the smallest part that was held since an instant.
func (r *partsHeld) least(from time.Duration) int64 {
	for _, h := range r.past {
		if h.until > from {
			return h.part
		}
	}
	return r.now
}

// next returns when the smallest part since from was given up, or Never if it is still held.
func (r *partsHeld) next(from time.Duration) time.Duration {
	for _, h := range r.past {
		if h.until > from {
			return h.until
		}
	}
	return bucket.Never
}
