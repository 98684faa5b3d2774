package weircw

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/observe"
)

// A sink is where batches go. It says which rows are left, to be sent again, and how many
// data points will never be taken.
type sink interface {
	send(ctx context.Context, b *batch) (left []*row, lost int64, err error)
}

// A courier carries batches to a sink, on a goroutine of its own and one after the other.
type courier struct {
	to   sink
	most int
	log  *slog.Logger
	ctx  context.Context // of the sink's calls; ends when Close may wait no longer
	end  context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	wake    chan struct{} // closed, and made anew, when there is something to do
	settled chan struct{} // closed, and made anew, when a batch has left
	waiting []batch       // the first is under way if busy
	busy    bool
	urgent  bool // no backoff before the next attempt
	closed  bool
	leaving int // attempts since closed
	failing bool
	count   Stats
}

func newCourier(to sink, most int, log *slog.Logger) *courier {
	c := &courier{to: to, most: most, log: log, done: make(chan struct{}), wake: make(chan struct{}), settled: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(context.Background())
	go c.run()
	return c
}

// take takes a batch. If there is no room the oldest is dropped that is not under way.
func (c *courier) take(b batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.count.Dropped += b.points()
		return
	}
	c.waiting = append(c.waiting, b)
	if len(c.waiting) > c.most {
		oldest := 0
		if c.busy && len(c.waiting) > 1 {
			oldest = 1
		}
		c.count.Dropped += c.waiting[oldest].points()
		c.waiting = append(c.waiting[:oldest:oldest], c.waiting[oldest+1:]...)
	}
	signal(&c.wake)
}

// signal wakes everybody who waits on the channel.
func signal(ch *chan struct{}) {
	close(*ch)
	*ch = make(chan struct{})
}

func (c *courier) run() {
	defer close(c.done)
	failures := 0
	for c.next() {
		if c.deliver() {
			failures = 0
			continue
		}
		failures++
		c.rest(c.backoff(failures))
	}
}

// next waits for a batch, and reports false when none will come.
func (c *courier) next() bool {
	for {
		c.mu.Lock()
		if len(c.waiting) > 0 {
			c.busy, c.urgent = true, false
			c.mu.Unlock()
			return true
		}
		wake, closed := c.wake, c.closed
		c.mu.Unlock()
		if closed {
			return false
		}
		<-wake
	}
}

// deliver makes one attempt with the first batch, and reports whether that has left.
func (c *courier) deliver() bool {
	c.mu.Lock()
	b := c.waiting[0]
	c.mu.Unlock()
	before := b.points()
	left, lost, err := c.send(&b)
	c.mu.Lock()
	defer c.mu.Unlock()
	b.rows = left
	c.count.Dropped += lost
	c.count.Published += before - lost - b.points()
	c.heard(err)
	c.busy = false
	if c.leaving++; !c.closed {
		c.leaving = 0
	}
	gone := len(left) == 0
	if !gone && c.closed && (c.leaving >= attemptsAtEnd || c.ctx.Err() != nil) {
		c.count.Dropped += b.points()
		gone = true
	}
	if gone {
		c.waiting = c.waiting[1:]
		c.leaving = 0
		signal(&c.settled)
	} else {
		c.waiting[0] = b
	}
	return gone
}

// attemptsAtEnd is how often a batch is tried when the exporter is closed.
const attemptsAtEnd = 3

// send survives a sink that panics.
func (c *courier) send(b *batch) (left []*row, lost int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			left, lost, err = nil, b.points(), fmt.Errorf("it panicked: %v", r)
		}
	}()
	return c.to.send(c.ctx, b)
}

// heard notes how an attempt went, and logs when that changes.
func (c *courier) heard(err error) {
	was := c.failing
	if c.failing = err != nil; c.failing {
		c.count.Failures++
	}
	if c.log == nil || was == c.failing {
		return
	}
	if c.failing {
		c.log.Warn("metrics not published to cloudwatch", "error", observe.Error(err), "waiting", len(c.waiting), "dropped", c.count.Dropped)
	} else {
		c.log.Info("metrics published to cloudwatch again", "waiting", len(c.waiting)-1, "dropped", c.count.Dropped)
	}
}

// backoff is how long to wait after so many failures: half of it is left to chance, so that
// the members of a fleet do not come back together.
func (c *courier) backoff(failures int) time.Duration {
	c.mu.Lock()
	if c.closed {
		failures = c.leaving // somebody waits
	}
	c.mu.Unlock()
	d := min(time.Second<<min(max(failures-1, 0), 6), time.Minute)
	return d/2 + rand.N(d/2)
}

// rest waits for the next attempt, unless somebody is in a hurry.
func (c *courier) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		c.mu.Lock()
		wake, urgent := c.wake, c.urgent
		c.mu.Unlock()
		if urgent {
			return
		}
		select {
		case <-timer.C:
			return
		case <-c.ctx.Done():
			return
		case <-wake:
		}
	}
}

// flush waits until what waits now has left, or ctx ends, and says how much is left then.
func (c *courier) flush(ctx context.Context) (left int64) {
	c.mu.Lock()
	c.urgent = true
	signal(&c.wake)
	var until time.Time
	if n := len(c.waiting); n > 0 {
		until = c.waiting[n-1].at
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		left, settled := c.pointsUntil(until), c.settled
		c.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return left
		}
	}
}

// pointsUntil is how many data points wait that are not younger. The caller holds mu.
func (c *courier) pointsUntil(at time.Time) (n int64) {
	for i := range c.waiting {
		if !c.waiting[i].at.After(at) {
			n += c.waiting[i].points()
		}
	}
	return n
}

// close delivers what waits until ctx ends, and says how much was dropped since it was asked.
func (c *courier) close(ctx context.Context) (lost int64) {
	c.mu.Lock()
	before := c.count.Dropped
	c.closed, c.urgent = true, true
	signal(&c.wake)
	c.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count.Dropped - before + c.points()
}

// points is how many data points wait. The caller holds mu.
func (c *courier) points() (n int64) {
	for i := range c.waiting {
		n += c.waiting[i].points()
	}
	return n
}

func (c *courier) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.count
	s.Waiting = c.points()
	return s
}
