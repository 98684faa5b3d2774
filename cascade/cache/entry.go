package cache

import "time"

// An Entry is a stored answer. Once it is in a Cache, its maps and bytes must not be changed, because all readers share
// them.
type Entry struct {
	Status int
	Header map[string][]string // only the headers that the caller needs again
	Body   []byte
	Meta   map[string]string // a few short texts for the caller

	// Stored is the time of the answer. In answers from the store it has no monotonic clock reading, so their age
	// depends on the wall clock.
	Stored time.Time

	// TTL is how long it is fresh. 0 means Options.TTL.
	TTL time.Duration
}

// mostAhead is the maximum time in the future of an accepted answer, because of clock differences between machines.
const mostAhead = time.Minute

// age returns the age. It is negative only for answers stored too far in the future.
func (e *Entry) age(now time.Time) time.Duration {
	age := now.Sub(e.Stored)
	if age < 0 && age >= -mostAhead {
		return 0
	}
	return age
}

// Approximate memory of an entry in addition to its text: a cache node with its table slot and the Entry, a map with its
// first texts, and one text.
const (
	costEntry = 384
	costMap   = 256
	costText  = 48
)

// size returns the approximate memory of an entry in bytes.
func (e *Entry) size() int {
	n := costEntry + cap(e.Body)
	if len(e.Header) > 0 {
		n += costMap
	}
	for name, values := range e.Header {
		n += 2*costText + len(name)
		for _, v := range values {
			n += costText + len(v)
		}
	}
	if len(e.Meta) > 0 {
		n += costMap
	}
	for name, v := range e.Meta {
		n += 2*costText + len(name) + len(v)
	}
	return n
}
