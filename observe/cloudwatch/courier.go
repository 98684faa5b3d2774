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

// A sink is where batches go. It says which rows are left, to be sent again, and how many
// data points will never be taken.
type sink interface {
	send(ctx context.Context, b *batch) (left []*row, lost int64, err error)
}

// A courier carries batches to a sink, one after the other. If there is no room for one, the
// oldest is dropped that is not under way.
type courier struct {
	to  sink
	log *slog.Logger
	box *outbox.Outbox[parcel]

	mu      sync.Mutex
	failing bool
	count   Stats
}

// A parcel is what is left of a batch, and how often it could not be sent.
type parcel struct {
	batch
	failures int
	leaving  int // of those, since the exporter is closed
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

// settle counts data points that wait no longer.
func (c *courier) settle(points, published, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Waiting -= points
	c.count.Published += published
	c.count.Dropped += dropped
}

// attemptsAtEnd is how often a batch is tried when the exporter is closed.
const attemptsAtEnd = 3

// deliver makes one attempt with a batch, and says when to make another with what is left.
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
		return backoff(p.leaving) // somebody waits
	}
	return backoff(p.failures)
}

// send survives a sink that panics.
func (c *courier) send(ctx context.Context, b *batch) (left []*row, lost int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			left, lost, err = nil, b.points(), fmt.Errorf("it panicked: %v", r)
		}
	}()
	return c.to.send(ctx, b)
}

// heard notes how an attempt went, and logs when that changes.
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

// backoff is how long to wait after so many failures: half of it is left to chance, so that
// the members of a fleet do not come back together.
func backoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 6), time.Minute)
	return d/2 + rand.N(d/2)
}

// close delivers what waits until ctx ends, and says how much was dropped since it was asked.
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
