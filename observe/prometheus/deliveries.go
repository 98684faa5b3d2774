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
	accepts  prometheus.Histogram
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
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_attempts_total", Help: "Attempts at deliveries, by how they ended."}, []string{"upstream", "class"}),
		dead:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_died_total", Help: "Deliveries that became dead letters."}, []string{"upstream", "reason"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_refused_total", Help: "Requests that were not stored to be delivered later, by why."}, []string{"upstream", "why"}),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_delivery_claims_lost_total", Help: "Attempts whose claim was lost before they ended: the delivery may be sent twice."}),
		accepts:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_delivery_accept_seconds", Help: "How long it took to store a request.", Buckets: []float64{.0005, .001, .002, .005, .01, .05, .1, .5, 1}}),
	}
	reg.MustRegister(d.attempts, d.dead, d.refused, d.lost, d.accepts, standing{q})
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
		Lost: func(*delivery.Delivery) { d.lost.Inc() },
	}
}

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
type standing struct{ q DeliveryQueue }

var (
	descDeliveries = prometheus.NewDesc("weir_deliveries", "Deliveries by where they stand; failed ones are dead letters.", []string{"upstream", "status"}, nil)
	descOldest     = prometheus.NewDesc("weir_dead_letter_oldest_seconds", "Age of the oldest dead letter.", []string{"upstream"}, nil)
	descLog        = prometheus.NewDesc("weir_deliveries_log_bytes", "Size of the write-ahead log of the deliveries' file.", nil, nil)
)

func (s standing) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDeliveries, descOldest, descLog} {
		ch <- d
	}
}

func (s standing) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	counts, err := s.q.Counts(ctx)
	if err != nil {
		return
	}
	for _, c := range counts {
		ch <- prometheus.MustNewConstMetric(descDeliveries, prometheus.GaugeValue, float64(c.N), c.Upstream, string(c.Status))
		if !c.Oldest.IsZero() {
			ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, max(0, time.Since(c.Oldest).Seconds()), c.Upstream)
		}
	}
	if q, ok := s.q.(logged); ok {
		ch <- prometheus.MustNewConstMetric(descLog, prometheus.GaugeValue, float64(q.LogSize()))
	}
}
