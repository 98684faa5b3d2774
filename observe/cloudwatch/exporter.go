// Package weircw publishes what limiters do as metrics of Amazon CloudWatch: as lines in
// the embedded metric format, for which a Lambda function needs nothing else, or through
// PutMetricData.
//
//	metrics, err := weircw.New(weircw.Config{})
//	s3, err := weir.New("s3", policy, weir.Options{Events: metrics.Events()})
//	metrics.Watch(s3)
//	...
//	err = metrics.Close(ctx) // at the end: publishes what still waits
//
// Events are added up in memory and published once an interval, so that 10,000 decisions a
// second make a handful of lines. An event never waits for a writer or a service.
//
// Dimensions are names that a policy declares, error codes that weir knows, regions and
// words of weir's own: never a key, a path or an id. docs/how-to/use-cloudwatch.md lists every metric.
package weircw

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
)

// An Exporter publishes the metrics of a program's upstreams. Make one with New, share it,
// and close it; it is safe for concurrent use.
type Exporter struct {
	config  Config
	static  []pair
	ignored map[string]bool
	uses    [kinds]uses
	book    *book

	away      atomic.Bool
	activated atomic.Int64

	mu      sync.Mutex // one collect at a time
	wasAway bool
	watched map[string]*weir.Upstream
	counts  func(context.Context) ([]delivery.Count, error) // of deliveries; nil if there are none
	down    func() []string                                 // cascades none of whose models can be asked; nil if there are none

	courier *courier
	stop    chan struct{} // closed by Close
	closing sync.Once
	ticking sync.WaitGroup
}

// New makes an exporter and starts it, or says everything that is wrong with its
// configuration.
func New(c Config) (*Exporter, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cloudwatch: %w", err)
	}
	c = c.WithDefaults()
	e := &Exporter{
		config: c, ignored: make(map[string]bool), book: newBook(c.Series),
		watched: make(map[string]*weir.Upstream), stop: make(chan struct{}),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Static)) {
		e.static = append(e.static, pair{name, c.Static[name]})
	}
	for _, upstream := range c.Ignore {
		e.ignored[upstream] = true
	}
	for k := range kinds {
		e.uses[k] = c.usesOf(k)
	}
	e.courier = newCourier(c.sink(), c.Backlog, c.Log)
	e.ticking.Go(e.tick)
	return e, nil
}

func (c *Config) sink() sink {
	if c.API != nil {
		return &calls{api: c.API, namespace: c.Namespace}
	}
	return &lines{to: c.Lines, namespace: c.Namespace, weighted: c.Weighted}
}

func (e *Exporter) tick() {
	t := time.NewTicker(e.config.Interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			e.publish()
		case <-e.stop:
			return
		}
	}
}

// publish ends an interval: what was counted goes to the courier.
func (e *Exporter) publish() {
	dead, down := e.dead(), e.chainsDown()
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.collect(dead, down); len(b.rows) > 0 {
		e.courier.take(b)
	}
}

// Watch publishes what is left of the upstream's limits, in place of those of another
// upstream by the same name.
func (e *Exporter) Watch(u *weir.Upstream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ignored[u.Name()] {
		e.watched[u.Name()] = u
	}
}

// Forget ends Watch.
func (e *Exporter) Forget(upstream string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watched, upstream)
}

// upstreams are those that are watched, if what is left of their limits is wanted. The
// caller holds mu.
func (e *Exporter) upstreams() map[string]*weir.Upstream {
	if e.config.Metrics[TokensAvailable].Off {
		return nil
	}
	return e.watched
}

// Flush publishes what was counted so far and waits until that is done or ctx ends. A
// Lambda function does well to flush at the end of each invocation: its timers stand still
// between two. The error says how much was still waiting; it is not lost.
func (e *Exporter) Flush(ctx context.Context) error {
	e.publish()
	if !e.courier.box.Flush(ctx) {
		return fmt.Errorf("flush to cloudwatch: %w; %d data points are still queued", context.Cause(ctx), e.Stats().Waiting)
	}
	return nil
}

// Close publishes what was counted and ends the exporter: what comes later is not counted.
// What cannot be published until ctx ends, or within three more attempts, is dropped, and
// the error says how much that is.
func (e *Exporter) Close(ctx context.Context) error {
	e.closing.Do(func() {
		close(e.stop)
		e.ticking.Wait()
		e.publish()
	})
	if lost := e.courier.close(ctx); lost > 0 {
		return fmt.Errorf("close cloudwatch: %d data points were dropped", lost)
	}
	return nil
}

// Stats are numbers of data points: metrics by their dimensions, once an interval.
type Stats struct {
	Published int64
	Dropped   int64 // for want of room, refused for good, or left at the end
	Waiting   int64
	Failures  int64 // times that something could not be published, repeats included
}

// Stats says how publishing goes.
func (e *Exporter) Stats() Stats { return e.courier.stats() }
