package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// deliveries are what is kept and sent later; nil if the file asks for none.
type deliveries struct {
	store    *sqlite.Store
	worker   *delivery.Worker
	attempts *prometheus.CounterVec
	accepts  prometheus.Histogram
	dead     *prometheus.CounterVec
	lost     prometheus.Counter
	ended    chan struct{} // closed when the worker has ended; nil until it runs
	cancel   context.CancelFunc
}

func (s *Server) newDeliveries(c *config.Deliveries, registry prometheus.Registerer) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	store, err := sqlite.Open(ctx, c.File, sqlite.Options{Keep: c.Keep, KeepDead: c.KeepDead})
	if err != nil {
		return err
	}
	d := &deliveries{store: store}
	d.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_attempts_total", Help: "Attempts at deliveries, by how they ended."}, []string{"upstream", "class"})
	d.dead = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_delivery_died_total", Help: "Deliveries that became dead letters."}, []string{"upstream", "reason"})
	d.lost = prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_delivery_claims_lost_total", Help: "Attempts whose claim was lost before they ended: the delivery may be sent twice."})
	d.accepts = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_delivery_accept_seconds", Help: "How long it took to store a request.", Buckets: []float64{.0005, .001, .002, .005, .01, .05, .1, .5, 1}})
	registry.MustRegister(d.attempts, d.dead, d.lost, d.accepts, waiting{store})
	d.worker = &delivery.Worker{Queue: store, Owner: "weir", Sender: s.proxy.Sender, Schedule: s.proxy.ScheduleOf, Events: s.deliveryEvents(d)}
	s.deliveries = d
	s.proxy.Later(d)
	return nil
}

func (s *Server) deliveryEvents(d *deliveries) delivery.Events {
	return delivery.Events{
		Ended: func(of *delivery.Delivery, a *delivery.Attempt) {
			d.attempts.WithLabelValues(of.Upstream, a.Class.String()).Inc()
		},
		Dead: func(upstream string, why delivery.Reason, n int) {
			d.dead.WithLabelValues(upstream, string(why)).Add(float64(n))
			s.log.Error("deliveries became dead letters", "upstream", upstream, "reason", string(why), "number", n)
		},
		Lost: func(of *delivery.Delivery) {
			d.lost.Inc()
			s.log.Warn("a delivery may be sent twice: its claim was lost before the attempt ended", "upstream", of.Upstream, "delivery", of.ID, "id", of.Correlation)
		},
		Error: func(doing, upstream string, cause error) {
			s.log.Error("deliveries: it is tried again", "doing", doing, "upstream", upstream, "error", cause.Error())
		},
	}
}

// Accept stores a request.
func (d *deliveries) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	begin := time.Now()
	got, fresh, err := d.worker.Accept(ctx, r)
	if err == nil {
		d.accepts.Observe(time.Since(begin).Seconds())
	}
	return got, fresh, err
}

// Get finds a delivery.
func (d *deliveries) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	return d.store.Get(ctx, id)
}

// start sends what is due.
func (d *deliveries) start() {
	if d == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.ended = cancel, make(chan struct{})
	go func() {
		defer close(d.ended)
		d.worker.Run(ctx)
	}()
}

// stop has the worker give back what it has, and closes the file.
func (d *deliveries) stop() error {
	if d == nil {
		return nil
	}
	if d.ended != nil {
		d.cancel()
		<-d.ended
	}
	if err := d.store.Close(); err != nil {
		return fmt.Errorf("close the deliveries' file: %w", err)
	}
	return nil
}

// waiting tells how many deliveries there are, by the counts that are kept.
type waiting struct{ store *sqlite.Store }

var (
	descDeliveries = prometheus.NewDesc("weir_deliveries", "Deliveries by where they stand; failed ones are dead letters.", []string{"upstream", "status"}, nil)
	descOldest     = prometheus.NewDesc("weir_dead_letter_oldest_seconds", "Age of the oldest dead letter.", []string{"upstream"}, nil)
	descLog        = prometheus.NewDesc("weir_deliveries_log_bytes", "Size of the write-ahead log of the deliveries' file.", nil, nil)
)

func (w waiting) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDeliveries, descOldest, descLog} {
		ch <- d
	}
}

func (w waiting) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	counts, err := w.store.Counts(ctx)
	if err != nil {
		return
	}
	for _, c := range counts {
		ch <- prometheus.MustNewConstMetric(descDeliveries, prometheus.GaugeValue, float64(c.N), c.Upstream, string(c.Status))
		if !c.Oldest.IsZero() {
			ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, max(0, time.Since(c.Oldest).Seconds()), c.Upstream)
		}
	}
	ch <- prometheus.MustNewConstMetric(descLog, prometheus.GaugeValue, float64(w.store.LogSize()))
}

// endDeliveries ends what is delivered, when no calls come any more.
func (s *Server) endDeliveries() {
	if err := s.deliveries.stop(); err != nil {
		s.log.Error("deliveries", "error", err.Error())
	}
}
