package cache

import "time"

// An Entry is an answer as it is kept. Once it is in a Cache, nobody may change its
// maps and bytes: every reader has the same.
type Entry struct {
	Status int
	Header map[string][]string // those that the caller wants back, no others
	Body   []byte
	Meta   map[string]string // what else the caller wants to know of it: a few short texts

	// Stored is when the answer was given. Without a reading of the monotonic clock, as in
	// an answer from the store, its age is that of the clock on the wall.
	Stored time.Time

	// TTL is how long it is fresh; 0 means Options.TTL.
	TTL time.Duration
}

// mostAhead is how far in the future an answer may have been stored, by the clock of
// another machine, and still be believed.
const mostAhead = time.Minute

// age is below 0 only for what was stored too far in the future.
func (e *Entry) age(now time.Time) time.Duration {
	age := now.Sub(e.Stored)
	if age < 0 && age >= -mostAhead {
		return 0
	}
	return age
}

// What entries cost beside their text, about: a node of the cache and its place in the
// table, an Entry, a map and its first texts, one text.
const (
	costEntry = 384
	costMap   = 256
	costText  = 48
)

// size is how many bytes an entry takes in memory, about.
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
