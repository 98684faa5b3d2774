// Package callid makes the ids of calls whose callers bring none. An id begins with the second in which it was made, so that
// people who have nothing but an id can be told what went on then.
package callid

import (
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	random = 9                                          // digits of an id that are random, to base 36: 46 bits
	most   = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 // ids that a second has
)

// New makes an id at an instant: lower-case letters and digits, 15 until the year 2038 and 16 after it.
func New(now time.Time) string {
	var b [24]byte
	id := strconv.AppendInt(b[:0], max(0, now.Unix()), 36)
	end := len(id)
	id = strconv.AppendUint(id, most+rand.Uint64N(most), 36) // a 1 and the random digits
	copy(id[end:], id[end+1:])
	return string(id[:len(id)-1])
}

// Second is the one in which an id was made. ok is false for ids that New has not made, as far as can be seen: callers
// may bring any.
func Second(id string) (at time.Time, ok bool) {
	if len(id) != 6+random && len(id) != 7+random {
		return time.Time{}, false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return time.Time{}, false
		}
	}
	s, err := strconv.ParseInt(id[:len(id)-random], 36, 64)
	return time.Unix(s, 0), err == nil
}
