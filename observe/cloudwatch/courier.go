package weircw

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/observe"
)

// A sink publishes batches. It returns the rows to send again and the number of data points that will never be accepted.
type sink interface {
	send(ctx context.Context, b *batch) (left []*row, lost int64, err error)
}

// A courier sends batches to a sink, one at a time. If the backlog is full, it drops the oldest batch that is not being sent.
type courier struct {
	to  sink
	log *slog.Logger
	box *outbox.Outbox[parcel]

	mu      sync.Mutex
	failing bool
	count   Stats
}

// A parcel is the remainder of a batch and the number of failed attempts.
type parcel struct {
	batch
	failures int
	leaving  int // failures since the exporter was closed
}

func newCourier(to sink, most int, log *slog.Logger) *courier {
	c := &courier{to: to, log: log}
	c.box = outbox.New(outbox.Config[parcel]{
		Most: most, Newest: true, Hurry: true, Send: c.deliver,
		Dropped: func(p *parcel) { c.settle(p.points(), 0, p.points()) },
	})
	return c
}

func (c *courier) take(b batch) {
	c.mu.Lock()
	c.count.Waiting += b.points()
	c.mu.Unlock()
	c.box.Put(parcel{batch: b})
}

// settle counts data points that no longer wait.
func (c *courier) settle(points, published, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Waiting -= points
	c.count.Published += published
	c.count.Dropped += dropped
}

// attemptsAtEnd is the maximum number of attempts for a batch once the exporter is closed.
const attemptsAtEnd = 3

// deliver makes one attempt to send a batch, and returns the delay before the next attempt with the rest.
func (c *courier) deliver(ctx context.Context, p *parcel) time.Duration {
	before := p.points()
	left, lost, err := c.send(ctx, &p.batch)
	p.rows = left
	gone := before - p.points()
	c.settle(gone, gone-lost, lost)
	c.heard(err)
	if len(left) == 0 {
		return 0
	}
	p.failures++
	if c.box.Closing() {
		if p.leaving++; p.leaving >= attemptsAtEnd {
			c.settle(p.points(), 0, p.points())
			return 0
		}
		return backoff(p.leaving) // a caller of Close is waiting
	}
	return backoff(p.failures)
}

// send recovers from a sink that panics.
func (c *courier) send(ctx context.Context, b *batch) (left []*row, lost int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			left, lost, err = nil, b.points(), fmt.Errorf("it panicked: %v", r)
		}
	}()
	return c.to.send(ctx, b)
}

func (c *courier) heard(err error) {
	c.mu.Lock()
	was, count := c.failing, &c.count
	if c.failing = err != nil; err != nil {
		count.Failures++
	}
	dropped := count.Dropped
	c.mu.Unlock()
	if waiting, _ := c.box.Waiting(); c.log != nil && err != nil && !was {
		c.log.Warn("metrics not published to cloudwatch", "error", observe.Error(err), "waiting", waiting+1, "dropped", dropped)
	} else if c.log != nil && err == nil && was {
		c.log.Info("metrics published to cloudwatch again", "waiting", waiting, "dropped", dropped)
	}
}

// backoff returns the delay after a number of failures. Half of it is random, so that the members of a fleet do not retry at the
// same time.
func backoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 6), time.Minute)
	return d/2 + rand.N(d/2)
}

// close sends the waiting batches until ctx ends, and returns the number of data points lost meanwhile.
func (c *courier) close(ctx context.Context) (lost int64) {
	before := c.stats().Dropped
	c.box.Close(ctx)
	now := c.stats()
	return now.Dropped - before + now.Waiting
}

func (c *courier) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
