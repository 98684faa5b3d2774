// Package weircw publishes metrics to Amazon CloudWatch: as lines in the embedded metric format, which a Lambda function can use
// without further setup, or by PutMetricData.
//
//	metrics, err := weircw.New(weircw.Config{})
//	s3, err := weir.New("s3", policy, weir.Options{Events: metrics.Events()})
//	metrics.Watch(s3)
//	...
//	err = metrics.Close(ctx) // publishes what still waits
//
// Events are added up in memory and published once per interval, so that 10,000 decisions a second become a few lines. An event
// never waits for a writer or a service.
//
// Dimensions are names that a policy declares, known error codes, regions and fixed values. They are never a key, a path or an
// ID. docs/how-to/use-cloudwatch.md lists every metric.
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

// An Exporter publishes the metrics of a program's upstreams. Create one with New, share it, and close it at the end. It is safe
// for concurrent use.
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
	down    func() []string                                 // returns the upstreams whose models are all unavailable; nil if there are no cascades

	courier *courier
	stop    chan struct{} // closed by Close
	closing sync.Once
	ticking sync.WaitGroup
}

// New returns a running exporter, or all errors in its configuration.
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

// publish ends an interval and passes its counts to the courier.
func (e *Exporter) publish() {
	dead, down := e.dead(), e.chainsDown()
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.collect(dead, down); len(b.rows) > 0 {
		e.courier.take(b)
	}
}

// Watch publishes the remaining units of the upstream's limits. It replaces an upstream of the same name.
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

// upstreams returns the watched upstreams, or nil if remaining units are not published. The caller holds mu.
func (e *Exporter) upstreams() map[string]*weir.Upstream {
	if e.config.Metrics[TokensAvailable].Off {
		return nil
	}
	return e.watched
}

// Flush publishes the current counts, and waits until that is done or ctx ends. A Lambda function should flush at the end of each
// invocation, because its timers stop between invocations. The error has the number of data points that still wait. They are not
// lost.
func (e *Exporter) Flush(ctx context.Context) error {
	e.publish()
	if !e.courier.box.Flush(ctx) {
		return fmt.Errorf("flush to cloudwatch: %w; %d data points are still queued", context.Cause(ctx), e.Stats().Waiting)
	}
	return nil
}

// Close publishes the current counts and ends the exporter. Later events are not counted. Data points that cannot be published
// before ctx ends, or within three further attempts, are dropped, and the error has their number.
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

// Stats counts data points: one for each metric, set of dimensions and interval.
type Stats struct {
	Published int64
	Dropped   int64 // no room, rejected, or still waiting at the end
	Waiting   int64
	Failures  int64 // failed attempts to publish, including repeated ones
}

// Stats returns the current counts.
func (e *Exporter) Stats() Stats { return e.courier.stats() }
