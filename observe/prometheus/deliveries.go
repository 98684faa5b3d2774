package weirprom

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/observe/metric"
)

// Deliveries are the metrics of deliveries. Except for Holds, their methods are safe for concurrent use.
type Deliveries struct {
	attempts *prometheus.CounterVec
	dead     *prometheus.CounterVec
	refused  *prometheus.CounterVec
	lost     prometheus.Counter
	left     *prometheus.CounterVec
	accepts  prometheus.Histogram
	standing *standing
}

// A DeliveryQueue is read during each scrape. It must be safe for concurrent use, because scrapes may overlap.
type DeliveryQueue interface {
	Counts(context.Context) ([]delivery.Count, error)
}

// A logged queue has a write-ahead log, as a queue in a file does.
type logged interface {
	LogSize() int64 // in bytes
}

// NewDeliveries creates and registers the metrics of a queue.
func NewDeliveries(reg prometheus.Registerer, q DeliveryQueue) *Deliveries {
	d := &Deliveries{
		attempts: counter("weir_delivery_attempts_total"),
		dead:     counter("weir_delivery_dead_letters_total"),
		refused:  counter("weir_delivery_refused_total"),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_delivery_claims_lost_total", Help: metric.Help("weir_delivery_claims_lost_total")}),
		left:     counter("weir_delivery_attempts_interrupted_total"),
		accepts:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_delivery_accept_seconds", Help: metric.Help("weir_delivery_accept_seconds"), Buckets: []float64{.0005, .001, .002, .005, .01, .05, .1, .5, 1}}),
	}
	d.standing = &standing{q: q}
	reg.MustRegister(d.attempts, d.dead, d.refused, d.lost, d.left, d.accepts, d.standing)
	return d
}

// Events returns the events to pass to the queue's worker.
func (d *Deliveries) Events() delivery.Events {
	return delivery.Events{
		Ended: func(of *delivery.Delivery, a *delivery.Attempt) {
			d.attempts.WithLabelValues(of.Upstream, a.Class.String()).Inc()
		},
		Dead: func(upstream string, why delivery.Reason, n int) {
			d.dead.WithLabelValues(upstream, string(why)).Add(float64(n))
		},
		Left: func(upstream string, n int) { d.left.WithLabelValues(upstream).Add(float64(n)) },
		Lost: func(*delivery.Delivery) { d.lost.Inc() },
	}
}

// Holds adds metrics for callbacks and bodies that a worker holds. Call it before the first scrape.
func (d *Deliveries) Holds(held func() delivery.Held) { d.standing.held = held }

// Watch creates at 0 the series of an upstream that alerts read. Otherwise an alert would miss the first dead letter.
func (d *Deliveries) Watch(upstream string) {
	d.standing.watched.Store(upstream, true)
	for _, why := range delivery.Reasons {
		d.dead.WithLabelValues(upstream, string(why))
	}
}

// Accepted counts a stored request.
func (d *Deliveries) Accepted(took time.Duration) { d.accepts.Observe(took.Seconds()) }

// Refused counts a request that was not stored. why is a fixed value.
func (d *Deliveries) Refused(upstream, why string) { d.refused.WithLabelValues(upstream, why).Inc() }

// standing exports the number of deliveries, from the counts that the queue keeps.
type standing struct {
	q    DeliveryQueue
	held func() delivery.Held // nil if no worker reports

	watched sync.Map // upstreams; without a waiting delivery the age of the oldest is exported as 0 s
}

var (
	descDeliveries = gauge("weir_deliveries")
	descOldest     = gauge("weir_dead_letter_oldest_seconds")
	descWaiting    = gauge("weir_delivery_waiting_oldest_seconds")
	descOwed       = gauge("weir_delivery_callbacks_pending")
	descOwedSince  = gauge("weir_delivery_callback_oldest_seconds")
	descBodies     = gauge("weir_delivery_bodies")
	descBodyBytes  = gauge("weir_delivery_bodies_bytes")
	descBodySince  = gauge("weir_delivery_body_oldest_seconds")
	descLog        = gauge("weir_deliveries_log_bytes")
)

func (s *standing) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDeliveries, descOldest, descWaiting, descLog, descOwed, descOwedSince, descBodies, descBodyBytes, descBodySince} {
		ch <- d
	}
}

func (s *standing) Collect(ch chan<- prometheus.Metric) {
	if s.held != nil {
		held := s.held()
		tellPile(ch, held.Owed, descOwed, nil, descOwedSince)
		tellPile(ch, held.Bodies, descBodies, descBodyBytes, descBodySince)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	counts, err := s.q.Counts(ctx)
	if err != nil {
		return
	}
	waiting := make(map[string]time.Time)
	for _, c := range counts {
		if w, ok := waiting[c.Upstream]; !c.Waiting.IsZero() && (!ok || c.Waiting.Before(w)) {
			waiting[c.Upstream] = c.Waiting
		}
		ch <- prometheus.MustNewConstMetric(descDeliveries, prometheus.GaugeValue, float64(c.N), c.Upstream, string(c.Status))
		if !c.Oldest.IsZero() {
			ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, max(0, time.Since(c.Oldest).Seconds()), c.Upstream)
		}
	}
	s.watched.Range(func(upstream, _ any) bool {
		if _, ok := waiting[upstream.(string)]; !ok {
			ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, 0, upstream.(string))
		}
		return true
	})
	for upstream, since := range waiting {
		ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, max(0, time.Since(since).Seconds()), upstream)
	}
	if q, ok := s.q.(logged); ok {
		ch <- prometheus.MustNewConstMetric(descLog, prometheus.GaugeValue, float64(q.LogSize()))
	}
}

// tellPile exports the size and age of a pile. It does nothing if p is nil.
func tellPile(ch chan<- prometheus.Metric, p *delivery.Pile, n, bytes, oldest *prometheus.Desc) {
	if p == nil {
		return
	}
	age := 0.0
	if !p.Oldest.IsZero() {
		age = max(0, time.Since(p.Oldest).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(n, prometheus.GaugeValue, float64(p.N))
	ch <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, age)
	if bytes != nil {
		ch <- prometheus.MustNewConstMetric(bytes, prometheus.GaugeValue, float64(p.Bytes))
	}
}
