package otlp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/observe/trace"
)

func metricsByHTTP(t *testing.T) (*otlptest.Metrics, Sender) {
	t.Helper()
	m := otlptest.NewMetrics()
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	to, err := MetricsHTTP(HTTP{URL: s.URL + "/v1/metrics", Header: http.Header{"X-Token": {"t"}}})
	if err != nil {
		t.Fatal(err)
	}
	return m, to
}

func metricsByGRPC(t *testing.T) (*otlptest.Metrics, Sender) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, s := otlptest.NewMetrics(), grpc.NewServer() // accepts 4 MiB, the default
	collector.RegisterMetricsServiceServer(s, m)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	to, err := MetricsGRPC(GRPC{Target: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	return m, to
}

// anything returns metrics of all kinds, with many series.
func anything(t *testing.T, r *rand.Rand) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"upstream", "result"})
	bytes := prometheus.NewCounter(prometheus.CounterOpts{Name: "alloc_bytes_total"})
	both := prometheus.NewGauge(prometheus.GaugeOpts{Name: "alloc_bytes"}) // as the Go collector names one
	gauges := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "wait_max_seconds"}, []string{"of"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took_seconds", Buckets: []float64{.1, 1, 10}}, []string{"of"})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "pause_seconds", Objectives: map[float64]float64{.5: .05, .9: .01}})
	reg.MustRegister(counters, bytes, both, gauges, took, summary, prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "odd"}, func() float64 { return 7 }))
	bytes.Add(5)
	both.Set(3)
	for i := range 1 + r.IntN(5000) {
		counters.WithLabelValues(fmt.Sprint("api", i), []string{"ok", "", "fail\u00e9d"}[r.IntN(3)]).Add(float64(r.IntN(1 << 50)))
	}
	for i := range 10 {
		gauges.WithLabelValues(fmt.Sprint(i)).Set([]float64{0, -1, math.Inf(1), r.Float64()}[r.IntN(4)])
		h := took.WithLabelValues(fmt.Sprint(i)).(prometheus.ExemplarObserver)
		for n := range r.IntN(50) {
			h.ObserveWithExemplar(r.Float64()*20, prometheus.Labels{"trace_id": trace.ID{1, byte(i), 15: byte(n + 1)}.String()})
		}
		summary.Observe(r.Float64())
	}
	return reg
}

// Both protocols deliver all gathered metrics, under the names that Prometheus uses.
func TestMetricsArriveAsTheyAreGathered(t *testing.T) {
	for name, receive := range map[string]func(*testing.T) (*otlptest.Metrics, Sender){"HTTP": metricsByHTTP, "gRPC": metricsByGRPC} {
		for range 10 {
			seed := rand.Uint64()
			families, err := anything(t, rand.New(rand.NewPCG(seed, 0))).Gather()
			if err != nil {
				t.Fatal(err)
			}
			m, to := receive(t)
			meter := NewMeter(Metrics{Gather: func() ([]*dto.MetricFamily, error) { return families, nil }, To: to, Resource: Resource{Service: "orders", Attrs: map[string]string{"a": "b"}}})
			if lost := meter.Close(t.Context()); lost != 0 {
				t.Fatalf("%s: %d requests were left, %+v", name, lost, meter.Stats())
			}
			got, err := otlptest.Series(m.Requests())
			if diff := otlptest.Differ(got, otlptest.Gathered(families)); err != nil || diff != "" {
				t.Errorf("%s, seed %d: %v\n%s", name, seed, err, diff)
			}
			for _, q := range m.Requests() {
				of := q.ResourceMetrics[0]
				if size := proto.Size(q); size > 3<<20 || of.Resource.Attributes[0].Value.GetStringValue() != "orders" || of.Resource.Attributes[1].Key != "a" || of.SchemaUrl != trace.SchemaURL || of.ScopeMetrics[0].Scope.Name != scope {
					t.Errorf("%s: %d bytes, of %v", name, size, of.Resource)
				}
				for _, one := range of.ScopeMetrics[0].Metrics {
					if strings.HasSuffix(one.Name, "_total") != (one.Name == "alloc_bytes_total") || (one.Unit == "s") != strings.HasSuffix(one.Name, "_seconds") {
						t.Errorf("%s in %q; want no _total, but where there is another by the name without, and the unit of the name", one.Name, one.Unit)
					}
				}
			}
			if h := m.Headers()[0]; name == "HTTP" && h.Get("X-Token") != "t" {
				t.Errorf("headers %v", h)
			}
		}
	}
}

// A receiver that accepts 4 MiB accepts metrics of any total size.
func TestAGatherIsSentInParts(t *testing.T) {
	reg := prometheus.NewRegistry()
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g"}, []string{"of"})
	reg.MustRegister(v)
	for i := range 40_000 {
		v.WithLabelValues(fmt.Sprint(i, strings.Repeat("x", 100))).Set(float64(i))
	}
	m, to := metricsByGRPC(t)
	meter := NewMeter(Metrics{Gather: reg.Gather, To: to})
	if lost := meter.Close(t.Context()); lost != 0 || len(m.Requests()) < 5 {
		t.Fatalf("%d requests were left, %d came", lost, len(m.Requests()))
	}
	families, _ := reg.Gather()
	got, err := otlptest.Series(m.Requests())
	if diff := otlptest.Differ(got, otlptest.Gathered(families)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// An away is a receiver that may be unavailable.
type away struct {
	err    atomic.Pointer[error]
	bodies [][]byte
	asked  int
}

func (a *away) sendMetrics(_ context.Context, body []byte) error {
	a.asked++
	if e := a.err.Load(); e != nil {
		return *e
	}
	a.bodies = append(a.bodies, body)
	return nil
}

func (a *away) points(t *testing.T, name string) (all []*metrics.NumberDataPoint) {
	t.Helper()
	for _, b := range a.bodies {
		q := new(collector.ExportMetricsServiceRequest)
		if err := proto.Unmarshal(b, q); err != nil {
			t.Fatal(err)
		}
		for _, m := range q.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			if m.Name == name {
				all = append(all, m.GetSum().DataPoints...)
			}
		}
	}
	return all
}

// During an outage of the receiver, failures are counted, memory is bounded, and the newest request is kept. At the end,
// everything is tried once more.
func TestWhileTheReceiverOfMetricsIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, c := prometheus.NewRegistry(), prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: strings.Repeat("x", 100<<10)})
		reg.MustRegister(c)
		to := new(away)
		gone := error(&trace.LaterError{Err: errors.New("away")})
		to.err.Store(&gone)
		meter := NewMeter(Metrics{Gather: reg.Gather, To: to, Every: time.Second, Bytes: 1 << 20})
		for range 60 {
			c.Inc()
			time.Sleep(time.Second)
			if s := meter.Stats(); s.Waiting > 1<<20 {
				t.Fatalf("%d bytes wait", s.Waiting)
			}
		}
		s := meter.Stats()
		if s.Failed == 0 || s.Exported != 0 || s.Dropped == 0 || s.Failed > 20 {
			t.Errorf("%+v, want some that failed, and were dropped", s)
		}
		to.err.Store(nil)
		time.Sleep(time.Millisecond) // the gather of this second is over
		c.Inc()
		if lost := meter.Close(t.Context()); lost != 0 {
			t.Errorf("%d were left", lost)
		}
		all := to.points(t, "c")
		if n := len(all); n == 0 || all[n-1].GetAsDouble() != 61 || int64(n) != meter.Stats().Exported {
			t.Errorf("%d points came of %+v, the last %v; want 61", n, meter.Stats(), all[n-1])
		}
	})
}

// A request that is rejected is not repeated, and a receiver that is unavailable does not delay Close.
func TestMetricsThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total"}))
		to := new(away)
		no := errors.New("no")
		to.err.Store(&no)
		meter := NewMeter(Metrics{Gather: reg.Gather, To: to, Every: time.Second})
		time.Sleep(1500 * time.Millisecond)
		if s := meter.Stats(); s.Denied != 1 || to.asked != 1 {
			t.Errorf("%+v, asked %d times, want once", s, to.asked)
		}
		gone := error(&trace.LaterError{Err: errors.New("away"), After: time.Hour})
		to.err.Store(&gone)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		if lost := meter.Close(ctx); lost != 1 || time.Since(begin) > 2*time.Second {
			t.Errorf("%d were left, after %v", lost, time.Since(begin))
		}
	})
}

// A series starts at the gather before its first one, and again where it decreases.
func TestSinceWhenSeriesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var values atomic.Pointer[map[string]float64]
		values.Store(&map[string]float64{"a": 5})
		to := new(away)
		meter := NewMeter(Metrics{Every: time.Minute, To: to, Gather: func() ([]*dto.MetricFamily, error) {
			f := &dto.MetricFamily{Name: new("c_total"), Type: dto.MetricType_COUNTER.Enum()}
			for _, of := range []string{"a", "b"} {
				if v, ok := (*values.Load())[of]; ok {
					f.Metric = append(f.Metric, &dto.Metric{Label: []*dto.LabelPair{{Name: new("of"), Value: &of}}, Counter: &dto.Counter{Value: &v}})
				}
			}
			return []*dto.MetricFamily{f}, nil
		}})
		minutes := func(n uint64) time.Duration {
			return time.Duration(n) - time.Duration(began.UnixNano())
		}
		for _, next := range []map[string]float64{{"a": 7, "b": 1}, {"a": 2, "b": 1}, {"b": 1}, {"a": 9, "b": 1}} {
			time.Sleep(time.Minute + time.Millisecond)
			values.Store(&next)
		}
		meter.Close(t.Context())
		got := ""
		for _, p := range to.points(t, "c") {
			got += fmt.Sprintf("%s=%v since %v; ", p.Attributes[0].Value.GetStringValue(), p.GetAsDouble(), minutes(p.StartTimeUnixNano).Round(time.Minute))
		}
		if want := "a=5 since 0s; a=7 since 0s; b=1 since 1m0s; a=2 since 2m0s; b=1 since 1m0s; b=1 since 1m0s; a=9 since 4m0s; b=1 since 1m0s; "; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A series that is missing from a gather with an error does not restart at the next.
func TestAGatherWithAnErrorForgetsNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gathers, to := 0, new(away)
		meter := NewMeter(Metrics{Every: time.Minute, To: to, Gather: func() ([]*dto.MetricFamily, error) {
			if gathers++; gathers == 2 {
				return nil, errors.New("half")
			}
			return []*dto.MetricFamily{{Name: new("c_total"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Counter: &dto.Counter{Value: new(float64(100 + gathers))}}}}}, nil
		}})
		time.Sleep(2*time.Minute + time.Second)
		meter.Close(t.Context())
		all := to.points(t, "c")
		if len(all) != 2 || all[0].StartTimeUnixNano != all[1].StartTimeUnixNano {
			t.Errorf("got %v, want two since the same time", all)
		}
	})
}

// After the clock was set back, no series starts after its gather, and none restarts at each gather.
func TestNoSeriesBeginsAfterItWasGathered(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	since := newStarts(began)
	later := timestamppb.New(began.Add(30 * time.Second))
	for i, next := range []struct {
		at            time.Duration // after the start
		told, counted time.Duration
	}{
		{time.Minute, 30 * time.Second, 0}, {-time.Hour, -time.Hour, -time.Hour}, {-59 * time.Minute, -time.Hour, -time.Hour}, {time.Hour, -time.Hour, -time.Hour},
	} {
		since.begin(began.Add(next.at))
		for name, want := range map[string]time.Duration{"told": next.told, "counted": next.counted} {
			created := later
			if name == "counted" {
				created = nil
			}
			if got := time.Duration(since.of(name, nil, 5, created)) - time.Duration(began.UnixNano()); got != want {
				t.Errorf("gather %d at %v: %s since %v, want %v", i, next.at, name, got, want)
			}
		}
		since.end(true)
	}
}
