package otlp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/observe/trace"
)

// Metrics configure which metrics are sent, how often, and where.
type Metrics struct {
	Gather func() ([]*dto.MetricFamily, error) // usually a Prometheus registry's, so that the metrics equal those on /metrics
	To     Sender
	Log    *slog.Logger // receives failures and recovery of the export; nil means no log

	Resource Resource
	Every    time.Duration // 0 means a minute
	Bytes    int64         // maximum size of waiting requests; 0 means 16 MiB
}

const (
	defaultEvery     = time.Minute
	defaultMostWaits = 16 << 20
	sending          = 10 * time.Second // of one attempt
	attemptsAtEnd    = 3
)

// A Sender sends metrics over HTTP or gRPC. It is safe for concurrent use.
type Sender interface {
	// sendMetrics makes one attempt. Its errors have the meaning of a trace.Exporter's.
	sendMetrics(ctx context.Context, body []byte) error
}

type metricsHTTP struct{ httpSender }

func (s *metricsHTTP) sendMetrics(ctx context.Context, body []byte) error {
	return s.send(ctx, func(b []byte) []byte { return append(b, body...) })
}

type metricsGRPC struct{ grpcSender }

func (s *metricsGRPC) sendMetrics(ctx context.Context, body []byte) error { return s.send(ctx, body) }

// MetricsHTTP returns a sender of metrics to a URL such as http://127.0.0.1:4318/v1/metrics. It uses the resource of Metrics.
func MetricsHTTP(o HTTP) (Sender, error) {
	s := new(metricsHTTP)
	if err := s.begin(o); err != nil {
		return nil, err
	}
	return s, nil
}

const metricsMethod = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

// MetricsGRPC returns a sender of metrics. It uses the resource of Metrics.
func MetricsGRPC(o GRPC) (Sender, error) {
	s := new(metricsGRPC)
	if err := s.begin(o, metricsMethod); err != nil {
		return nil, err
	}
	return s, nil
}

// MeterStats counts requests. A request that is repeated counts as failed each time.
type MeterStats struct {
	Exported int64
	Failed   int64 // attempts that will be repeated
	Denied   int64 // requests that the receiver rejected, in whole or in part
	Dropped  int64 // too much waited, or the program ended
	Waiting  int64 // bytes
}

// A Meter gathers metrics periodically and sends them. Code that updates metrics is not blocked. During an outage of the receiver
// the newest requests are kept: values are cumulative, so they include the older ones. Create one with NewMeter and end it with
// Close. Call Close once. Stats is safe for concurrent use.
type Meter struct {
	o        Metrics
	resource *resource
	since    *starts
	box      *outbox.Outbox[batch]
	stop     chan struct{}
	ended    sync.WaitGroup

	exported, failed, denied, dropped atomic.Int64
	failing                           atomic.Bool
}

// A batch is a request that waits or is being sent.
type batch struct {
	body
	failures int
}

// NewMeter returns a running Meter.
func NewMeter(o Metrics) *Meter {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Bytes <= 0 {
		o.Bytes = defaultMostWaits
	}
	m := &Meter{o: o, resource: newResource(o.Resource), since: newStarts(time.Now()), stop: make(chan struct{})}
	m.box = outbox.New(outbox.Config[batch]{
		Send: m.send, Size: func(b *batch) int64 { return int64(cap(b.bytes)) }, Bytes: o.Bytes, Newest: true, Hurry: true,
		Dropped: func(*batch) { m.dropped.Add(1) },
	})
	m.ended.Go(m.run)
	return m
}

func (m *Meter) run() {
	t := time.NewTicker(m.o.Every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.gather()
		case <-m.stop:
			return
		}
	}
}

// gather gathers all metrics and queues them. Metrics that cannot be gathered do not prevent sending the others.
func (m *Meter) gather() {
	at := time.Now()
	families, err := m.o.Gather()
	if err != nil && m.o.Log != nil {
		m.o.Log.Warn("metrics not gathered", "error", observe.Error(err))
	}
	for _, b := range m.resource.metrics(families, at, m.since, err == nil) {
		m.box.Put(batch{body: b})
	}
}

// Close gathers once more, sends the waiting requests until ctx ends, and returns the number of lost requests.
func (m *Meter) Close(ctx context.Context) (lost int) {
	close(m.stop)
	m.ended.Wait()
	m.gather()
	lost = m.box.Close(ctx)
	if c, ok := m.o.To.(io.Closer); ok {
		_ = c.Close() // all sends have ended
	}
	return lost
}

// Stats returns the current counts.
func (m *Meter) Stats() MeterStats {
	_, waiting := m.box.Waiting()
	return MeterStats{m.exported.Load(), m.failed.Load(), m.denied.Load(), m.dropped.Load(), waiting}
}

// send makes one attempt to send a request, and returns the delay before the next.
func (m *Meter) send(ctx context.Context, b *batch) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, sending)
	defer cancel()
	err := m.o.To.sendMetrics(ctx, b.bytes)
	m.heard(err)
	later, again := errors.AsType[*trace.LaterError](err)
	switch {
	case err == nil:
		m.exported.Add(1)
	case !again:
		m.denied.Add(1)
	default:
		m.failed.Add(1)
		if b.failures++; b.failures >= attemptsAtEnd && m.box.Closing() {
			m.dropped.Add(1)
			return 0
		}
		d := min(time.Second<<min(b.failures-1, 5), 30*time.Second)
		return max(later.After, d/2+rand.N(d/2))
	}
	return 0
}

// heard logs the result of an attempt when it changes.
func (m *Meter) heard(err error) {
	if was := m.failing.Swap(err != nil); m.o.Log == nil || was == (err != nil) {
		return
	}
	if err == nil {
		m.o.Log.Info("metrics exported again")
		return
	}
	m.o.Log.Warn("metrics not exported", "error", observe.Error(err))
}
