// Package callid creates IDs for calls whose callers send none. An ID begins with the second of its creation, so that it leads
// to the events of that second even if the call was not recorded.
package callid

import (
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	random = 9                                          // random base-36 digits of an ID: 46 bits
	most   = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 // number of IDs per second
)

// New returns an ID for a time: lower-case letters and digits, 15 until the year 2038 and then 16.
func New(now time.Time) string {
	var b [24]byte
	id := strconv.AppendInt(b[:0], max(0, now.Unix()), 36)
	end := len(id)
	id = strconv.AppendUint(id, most+rand.Uint64N(most), 36) // a 1 and the random digits
	copy(id[end:], id[end+1:])
	return string(id[:len(id)-1])
}

// Second returns the second in which an ID was created. ok is false if the ID does not look like one from New, because callers
// may send any ID.
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
