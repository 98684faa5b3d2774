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

// Metrics say what is gathered, how often, and where it goes.
type Metrics struct {
	Gather func() ([]*dto.MetricFamily, error) // a Prometheus registry's: what /metrics shows is what is sent
	To     Sender
	Log    *slog.Logger // hears when metrics cannot be sent, and when they can again; nil for nobody

	Resource Resource
	Every    time.Duration // 0 means a minute
	Bytes    int64         // what may wait to be sent; 0 means 16 MiB
}

const (
	defaultEvery     = time.Minute
	defaultMostWaits = 16 << 20
	sending          = 10 * time.Second // of one attempt
	attemptsAtEnd    = 3
)

// A Sender sends metrics over HTTP or gRPC.
type Sender interface {
	// send makes one attempt. An error is as that of a trace.Exporter.
	sendMetrics(ctx context.Context, body []byte) error
}

type metricsHTTP struct{ httpSender }

func (s *metricsHTTP) sendMetrics(ctx context.Context, body []byte) error {
	return s.send(ctx, func(b []byte) []byte { return append(b, body...) })
}

type metricsGRPC struct{ grpcSender }

func (s *metricsGRPC) sendMetrics(ctx context.Context, body []byte) error { return s.send(ctx, body) }

// MetricsHTTP makes a sender of metrics, to a URL such as http://127.0.0.1:4318/v1/metrics. The resource is that of Metrics.
func MetricsHTTP(o HTTP) (Sender, error) {
	s := new(metricsHTTP)
	if err := s.begin(o); err != nil {
		return nil, err
	}
	return s, nil
}

// metricsMethod is MetricsService.Export.
const metricsMethod = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

// MetricsGRPC makes a sender of metrics. The resource is that of Metrics.
func MetricsGRPC(o GRPC) (Sender, error) {
	s := new(metricsGRPC)
	if err := s.begin(o, metricsMethod); err != nil {
		return nil, err
	}
	return s, nil
}

// MeterStats are what has become of what was gathered so far, in requests; one that is sent again fails each time.
type MeterStats struct {
	Exported int64
	Failed   int64 // attempts; there is to be another
	Denied   int64 // requests of which the receiver will never take all
	Dropped  int64 // too much waited, or the program ended
	Waiting  int64 // bytes
}

// A Meter gathers metrics from time to time, and sends them; whoever is asked for them waits for nobody. While the receiver is away
// the newest wait, as each says all that those before it have said. Make one with NewMeter and end it with Close.
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

// A batch is a request on its way.
type batch struct {
	body
	failures int
}

// NewMeter makes a Meter, which begins at once.
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

// gather has all that there is sent. What cannot be gathered keeps nothing else back.
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

// Close gathers once more, sends what waits until ctx ends, and says how many requests were left.
func (m *Meter) Close(ctx context.Context) (lost int) {
	close(m.stop)
	m.ended.Wait()
	m.gather()
	lost = m.box.Close(ctx)
	if c, ok := m.o.To.(io.Closer); ok {
		_ = c.Close() // nothing is sent any more
	}
	return lost
}

// Stats are what has become of what was gathered so far.
func (m *Meter) Stats() MeterStats {
	_, waiting := m.box.Waiting()
	return MeterStats{m.exported.Load(), m.failed.Load(), m.denied.Load(), m.dropped.Load(), waiting}
}

// send makes one attempt with a request, and says when to make another.
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

// heard logs how an attempt went, when that changes.
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
