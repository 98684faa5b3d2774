package filestore

import (
	"sync"
	"time"
)

// mostAhead is how far a file may be ahead of the wall clock and still be believed.
// For so long at most nothing comes back to any limit.
const mostAhead = 10 * time.Second

// A ticker is the store's clock: that of the machine when the file was opened, gone
// on monotonically since, and never behind what the file has seen.
type ticker struct {
	source      func() time.Time
	start, base time.Time

	mu   sync.Mutex
	last time.Time
}

// newTicker also returns how far the file is ahead, if that is not to be believed.
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
