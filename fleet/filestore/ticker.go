package filestore

import (
	"sync"
	"time"
)

// mostAhead is how far a file may be ahead of the wall clock and still be trusted. At most for this time, limits
// regain no units.
const mostAhead = 10 * time.Second

// A ticker is the store's clock. It starts with the machine's time when the file was opened, continues
// monotonically, and is never behind the latest write in the file.
type ticker struct {
	source      func() time.Time
	start, base time.Time

	mu   sync.Mutex
	last time.Time
}

// newTicker returns a clock. If the file is too far ahead to be trusted, ahead is by how much.
func newTicker(source func() time.Time, seen time.Time) (c *ticker, ahead time.Duration) {
	start := source()
	c = &ticker{source: source, start: start, base: start.Round(0).UTC()}
	switch ahead = seen.Sub(start); {
	case ahead > mostAhead:
		return c, ahead
	case ahead > 0:
		c.base = seen
	}
	return c, 0
}

func (c *ticker) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.base.Add(c.source().Sub(c.start)); t.After(c.last) {
		c.last = t
	}
	return c.last
}
