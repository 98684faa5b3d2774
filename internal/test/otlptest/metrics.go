package otlptest

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// Metrics receives metrics as the collector does, by gRPC and HTTP. It is safe for concurrent use. Answer must be set before.
type Metrics struct {
	collector.UnimplementedMetricsServiceServer
	Answer func() int // status over HTTP; nil means 200

	mu       sync.Mutex
	requests []*collector.ExportMetricsServiceRequest
	headers  []http.Header
	came     chan struct{}
}

// NewMetrics returns a receiver without a server.
func NewMetrics() *Metrics { return &Metrics{came: make(chan struct{}, 1)} }

// Export receives metrics by gRPC.
func (m *Metrics) Export(_ context.Context, q *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	m.take(q, nil)
	return &collector.ExportMetricsServiceResponse{}, nil
}

// ServeHTTP receives metrics by HTTP.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if m.Answer != nil {
		if status := m.Answer(); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	q := new(collector.ExportMetricsServiceRequest)
	z, err := gzip.NewReader(in.Body)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(z)
	}
	if err == nil {
		err = proto.Unmarshal(body, q)
	}
	if err != nil || in.Header.Get("Content-Type") != "application/x-protobuf" || in.URL.Path != "/v1/metrics" {
		http.Error(w, "want protobuf of metrics", http.StatusBadRequest)
		return
	}
	m.take(q, in.Header)
	out, _ := proto.Marshal(&collector.ExportMetricsServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func (m *Metrics) take(q *collector.ExportMetricsServiceRequest, h http.Header) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests, m.headers = append(m.requests, q), append(m.headers, h)
	select {
	case m.came <- struct{}{}:
	default:
	}
}

// Requests returns the received requests, and Headers their headers.
func (m *Metrics) Requests() []*collector.ExportMetricsServiceRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func (m *Metrics) Headers() []http.Header {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.headers)
}

// WaitFor waits for n requests.
func (m *Metrics) WaitFor(t testing.TB, n int) []*collector.ExportMetricsServiceRequest {
	t.Helper()
	for over := time.After(30 * time.Second); ; {
		if all := m.Requests(); len(all) >= n {
			return all
		}
		select {
		case <-m.came:
		case <-over:
			t.Fatalf("%d requests with metrics came, want %d", len(m.Requests()), n)
		}
	}
}

// Series returns the series in requests with Prometheus's names and labels: name{label="value"}. A histogram has its buckets,
// count and sum, as in Prometheus. It returns an error for duplicates, a name with two kinds, and wrong cumulative values.
func Series(requests []*collector.ExportMetricsServiceRequest) (map[string]float64, error) {
	r := reading{all: make(map[string]float64), kinds: make(map[string]string)}
	for _, q := range requests {
		for _, of := range q.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				for _, m := range s.Metrics {
					r.metric(m)
				}
			}
		}
	}
	return r.all, r.err
}

type reading struct {
	all   map[string]float64
	kinds map[string]string // of metrics, by name: a name must have one kind
	err   error
}

func (r *reading) add(name string, labels []string, v float64) {
	labels = slices.Clone(labels)
	slices.Sort(labels)
	key := name + "{" + strings.Join(labels, ",") + "}"
	if _, twice := r.all[key]; twice {
		r.err = fmt.Errorf("%s is told twice", key)
	}
	r.all[key] = v
}

func (r *reading) metric(m *metrics.Metric) {
	kind := fmt.Sprintf("%T", m.Data)
	if was := r.kinds[m.Name]; was != "" && was != kind {
		r.err = fmt.Errorf("%s is a %s and a %s", m.Name, was, kind)
	}
	r.kinds[m.Name] = kind
	switch d := m.Data.(type) {
	case *metrics.Metric_Gauge:
		for _, p := range d.Gauge.DataPoints {
			r.add(m.Name, labelsOf(p.Attributes), p.GetAsDouble())
		}
	case *metrics.Metric_Sum:
		if d.Sum.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || !d.Sum.IsMonotonic {
			r.err = fmt.Errorf("%s is no counter that cumulates", m.Name)
		}
		for _, p := range d.Sum.DataPoints {
			r.since(m.Name, p.StartTimeUnixNano, p.TimeUnixNano)
			r.add(strings.TrimSuffix(m.Name, "_total")+"_total", labelsOf(p.Attributes), p.GetAsDouble()) // as the collector's exporter does
		}
	case *metrics.Metric_Summary:
		for _, p := range d.Summary.DataPoints {
			labels := labelsOf(p.Attributes)
			r.since(m.Name, p.StartTimeUnixNano, p.TimeUnixNano)
			r.add(m.Name+"_count", labels, float64(p.Count))
			r.add(m.Name+"_sum", labels, p.Sum)
			for _, q := range p.QuantileValues {
				r.add(m.Name, append(slices.Clone(labels), fmt.Sprintf("quantile=%v", q.Quantile)), q.Value)
			}
		}
	case *metrics.Metric_Histogram:
		if d.Histogram.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
			r.err = fmt.Errorf("%s does not cumulate", m.Name)
		}
		for _, p := range d.Histogram.DataPoints {
			r.histogram(m.Name, p)
		}
	default:
		r.err = fmt.Errorf("%s has no points", m.Name)
	}
}

func (r *reading) histogram(name string, p *metrics.HistogramDataPoint) {
	r.since(name, p.StartTimeUnixNano, p.TimeUnixNano)
	labels, below := labelsOf(p.Attributes), uint64(0)
	if len(p.BucketCounts) != len(p.ExplicitBounds)+1 {
		r.err = fmt.Errorf("%s has %d buckets of %d bounds", name, len(p.BucketCounts), len(p.ExplicitBounds))
		return
	}
	for i, bound := range p.ExplicitBounds {
		below += p.BucketCounts[i]
		r.add(name+"_bucket", append(slices.Clone(labels), fmt.Sprintf("le=%v", bound)), float64(below))
	}
	if below += p.BucketCounts[len(p.ExplicitBounds)]; below != p.Count {
		r.err = fmt.Errorf("%s counts %d, and its buckets %d", name, p.Count, below)
	}
	r.add(name+"_count", labels, float64(p.Count))
	r.add(name+"_sum", labels, p.GetSum())
	for _, e := range p.Exemplars {
		r.add(name+"_exemplar", append(slices.Clone(labels), fmt.Sprintf("trace_id=%x=%v", e.TraceId, e.GetAsDouble())), e.GetAsDouble())
	}
}

func (r *reading) since(name string, start, at uint64) {
	if start == 0 || start > at {
		r.err = fmt.Errorf("%s counts from %d to %d", name, start, at)
	}
}

func labelsOf(all []*common.KeyValue) (labels []string) {
	for _, a := range all {
		labels = append(labels, a.Key+"="+a.Value.GetStringValue())
	}
	return labels
}

// Gathered returns the series of a gather in the same form.
func Gathered(families []*dto.MetricFamily) map[string]float64 {
	r := reading{all: make(map[string]float64)}
	for _, f := range families {
		name := f.GetName()
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() != "" { // an empty label equals a missing one
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				r.add(name, labels, m.Counter.GetValue())
			case dto.MetricType_GAUGE:
				r.add(name, labels, m.Gauge.GetValue())
			case dto.MetricType_UNTYPED:
				r.add(name, labels, m.Untyped.GetValue())
			case dto.MetricType_SUMMARY:
				r.add(name+"_count", labels, float64(m.Summary.GetSampleCount()))
				r.add(name+"_sum", labels, m.Summary.GetSampleSum())
				for _, q := range m.Summary.Quantile {
					r.add(name, append(slices.Clone(labels), fmt.Sprintf("quantile=%v", q.GetQuantile())), q.GetValue())
				}
			case dto.MetricType_HISTOGRAM:
				h := m.Histogram
				r.add(name+"_count", labels, float64(h.GetSampleCount()))
				r.add(name+"_sum", labels, h.GetSampleSum())
				for _, b := range h.Bucket {
					if !math.IsInf(b.GetUpperBound(), 1) {
						r.add(name+"_bucket", append(slices.Clone(labels), fmt.Sprintf("le=%v", b.GetUpperBound())), float64(b.GetCumulativeCount()))
					}
					if e := b.Exemplar; e != nil {
						r.add(name+"_exemplar", append(slices.Clone(labels), fmt.Sprintf("trace_id=%s=%v", e.Label[0].GetValue(), e.GetValue())), e.GetValue())
					}
				}
			}
		}
	}
	return r.all
}

// Differ describes the differences, or returns "".
func Differ(got, want map[string]float64) string {
	var all []string
	for name, v := range want {
		if w, ok := got[name]; !ok || w != v && !(math.IsNaN(w) && math.IsNaN(v)) {
			all = append(all, fmt.Sprintf("%s: got %v (%v), want %v", name, w, ok, v))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			all = append(all, name+" was never gathered")
		}
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), 20)], "\n")
}
