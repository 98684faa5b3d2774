package weirprom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
)

// Deliveries are the metrics of calls that are made later.
type Deliveries struct {
	attempts *prometheus.CounterVec
	dead     *prometheus.CounterVec
	refused  *prometheus.CounterVec
	lost     prometheus.Counter
	left     *prometheus.CounterVec
	accepts  prometheus.Histogram
	standing *standing
}

// A DeliveryQueue is what is asked at a scrape.
type DeliveryQueue interface {
	Counts(context.Context) ([]delivery.Count, error)
}

// A logged queue has a write-ahead log of its own, as one in a file does.
type logged interface {
	LogSize() int64 // in bytes
}

// NewDeliveries makes the metrics of a queue.
func NewDeliveries(reg prometheus.Registerer, q DeliveryQueue) *Deliveries {
	d := &Deliveries{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_attempts_total", Help: "Recorded attempts at deliveries."}, []string{"upstream", "class"}),
		dead:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_died_total", Help: "Deliveries that became dead letters: rejected, attempts, expired, dropped, upstream_gone, ended_worker, unavailable, unknown."}, []string{"upstream", "reason"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_refused_total", Help: "Requests that were not accepted for delivery: credential, condition, request (invalid), token (expires too early), operation, dialect, body_too_large, body (incomplete), memory, key_reused, under_way (another request with the key is running), full, share (the caller stores too many), uncertain (may have been stored), queue (does not respond)."}, []string{"upstream", "why"}),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_delivery_claims_lost_total", Help: "Attempts that lost their claim before they ended."}),
		left:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_attempts_left_total", Help: "Attempts that never ended because their process was killed or stalled."}, []string{"upstream"}),
		accepts:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_delivery_accept_seconds", Help: "Time to store a request.", Buckets: []float64{.0005, .001, .002, .005, .01, .05, .1, .5, 1}}),
	}
	d.standing = &standing{q: q}
	reg.MustRegister(d.attempts, d.dead, d.refused, d.lost, d.left, d.accepts, d.standing)
	return d
}

// Events are for the worker of the queue.
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

// Holds has the metrics tell what a worker holds, too. It is called before the first scrape.
func (d *Deliveries) Holds(held func() delivery.Held) { d.standing.held = held }

// Watch shows the dead letters of an upstream at 0: an alert would miss the first.
func (d *Deliveries) Watch(upstream string) {
	for _, why := range delivery.Reasons {
		d.dead.WithLabelValues(upstream, string(why))
	}
}

// Accepted counts a request that was stored.
func (d *Deliveries) Accepted(took time.Duration) { d.accepts.Observe(took.Seconds()) }

// Refused counts a request that was not stored. why is a word of weir's own.
func (d *Deliveries) Refused(upstream, why string) { d.refused.WithLabelValues(upstream, why).Inc() }

// standing tells how many deliveries there are, by the counts that are kept.
type standing struct {
	q    DeliveryQueue
	held func() delivery.Held // nil if nobody tells
}

var (
	descDeliveries = prometheus.NewDesc("weir_deliveries", "Deliveries by status: created, queued, processing, completed or failed (dead letters).", []string{"upstream", "status"}, nil)
	descOldest     = prometheus.NewDesc("weir_dead_letter_oldest_seconds", "Age of the oldest dead letter.", []string{"upstream"}, nil)
	descWaiting    = prometheus.NewDesc("weir_delivery_waiting_oldest_seconds", "Age of the oldest delivery that waits.", []string{"upstream"}, nil)
	descOwed       = prometheus.NewDesc("weir_delivery_callbacks_owed", "Callbacks that could not be stored yet.", nil, nil)
	descOwedSince  = prometheus.NewDesc("weir_delivery_callback_oldest_seconds", "Age of the oldest callback that could not be stored.", nil, nil)
	descBodies     = prometheus.NewDesc("weir_delivery_bodies", "Large bodies of stored deliveries, in files or S3, older than an hour.", nil, nil)
	descBodyBytes  = prometheus.NewDesc("weir_delivery_bodies_bytes", "Total size of the large bodies that weir_delivery_bodies counts.", nil, nil)
	descBodySince  = prometheus.NewDesc("weir_delivery_body_oldest_seconds", "Age of the oldest large body that weir_delivery_bodies counts.", nil, nil)
	descLog        = prometheus.NewDesc("weir_deliveries_log_bytes", "Size of the write-ahead log of the deliveries' file.", nil, nil)
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
	for upstream, since := range waiting {
		ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, max(0, time.Since(since).Seconds()), upstream)
	}
	if q, ok := s.q.(logged); ok {
		ch <- prometheus.MustNewConstMetric(descLog, prometheus.GaugeValue, float64(q.LogSize()))
	}
}

// tellPile tells of a pile that was looked at.
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
