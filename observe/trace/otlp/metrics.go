package otlp

import (
	"encoding/hex"
	"hash/maphash"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A body is an ExportMetricsServiceRequest.
type body struct {
	bytes  []byte
	points int
}

// mostOfBody is the maximum size of the points in a body, unless a single point is larger. gRPC receivers accept 4 MiB by
// default.
const mostOfBody = 1 << 20

const cumulative = 2

// An instant is a time in nanoseconds since 1970.
type instant uint64

// metrics encodes the metrics of an instant, in as many requests as necessary. It removes _total from Prometheus names, which
// exporters to Prometheus append again, unless another metric has the name without it. whole means that the gathered metrics are
// complete.
func (r *resource) metrics(families []*dto.MetricFamily, at time.Time, since *starts, whole bool) (all []body) {
	names := make(map[string]bool, len(families))
	for _, f := range families {
		names[f.GetName()] = true
	}
	w := metricsWriter{r: r, at: instant(at.UnixNano()), since: since}
	since.begin(at)
	for _, f := range families {
		name := f.GetName()
		if bare := strings.TrimSuffix(name, "_total"); f.GetType() == dto.MetricType_COUNTER && !names[bare] {
			name = bare
		}
		w.family(f, name)
	}
	since.end(whole)
	w.next()
	return w.done
}

// A metricsWriter encodes metrics into bodies.
type metricsWriter struct {
	r       *resource
	at      instant
	since   *starts
	metrics []byte // of the current body
	points  int    // in the current body
	done    []body
}

// next completes the current body.
func (w *metricsWriter) next() {
	if w.points == 0 {
		return
	}
	b := message(nil, 1, func(b []byte) []byte { // ResourceMetrics
		b = append(b, w.r.head...)
		b = message(b, 2, func(b []byte) []byte { // ScopeMetrics
			b = append(b, w.r.scope...)
			b = append(b, w.metrics...)
			return text(b, 3, trace.SchemaURL)
		})
		return text(b, 3, trace.SchemaURL)
	})
	w.done = append(w.done, body{b, w.points})
	w.metrics, w.points = w.metrics[:0], 0
}

// Field numbers in Metric.
const (
	gaugeField     = 5
	sumField       = 7
	histogramField = 9
	summaryField   = 11
)

func fieldOf(t dto.MetricType) protowire.Number {
	switch t {
	case dto.MetricType_COUNTER:
		return sumField
	case dto.MetricType_HISTOGRAM:
		return histogramField
	case dto.MetricType_SUMMARY:
		return summaryField
	}
	return gaugeField
}

func (w *metricsWriter) family(f *dto.MetricFamily, name string) {
	var points []byte
	n := 0
	put := func() {
		if n == 0 {
			return
		}
		if len(w.metrics)+len(points) > mostOfBody {
			w.next()
		}
		w.metrics = message(w.metrics, 2, func(b []byte) []byte { return appendMetric(b, f, name, points) })
		w.points += n
		points, n = points[:0], 0
	}
	for _, m := range f.GetMetric() {
		points = message(points, 1, func(b []byte) []byte { return w.point(b, f, m) })
		if n++; len(points) > mostOfBody/2 {
			put()
		}
	}
	put()
}

func appendMetric(b []byte, f *dto.MetricFamily, name string, points []byte) []byte {
	b = text(b, 1, name)
	b = text(b, 2, f.GetHelp())
	b = text(b, 3, unitOf(strings.TrimSuffix(name, "_total")))
	field := fieldOf(f.GetType())
	return message(b, field, func(b []byte) []byte {
		b = append(b, points...)
		if field == sumField || field == histogramField {
			b = number(b, 2, cumulative)
		}
		if field == sumField {
			b = number(b, 3, 1) // monotonic
		}
		return b
	})
}

// unitOf returns the unit at the end of a name, or "". It does not return "1", because exporters to Prometheus would append
// "_ratio" to the name.
func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	}
	return ""
}

func (w *metricsWriter) point(b []byte, f *dto.MetricFamily, m *dto.Metric) []byte {
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		c := m.GetCounter()
		b = labels(b, 7, m.GetLabel())
		b = w.times(b, f, m, c.GetValue(), c.GetCreatedTimestamp())
		b = float(b, 4, c.GetValue())
		return appendExemplar(b, 5, c.GetExemplar())
	case dto.MetricType_HISTOGRAM:
		return w.histogram(labels(b, 9, m.GetLabel()), f, m)
	case dto.MetricType_SUMMARY:
		s := m.GetSummary()
		b = labels(b, 7, m.GetLabel())
		b = w.times(b, f, m, float64(s.GetSampleCount()), s.GetCreatedTimestamp())
		b = fixed(b, 4, s.GetSampleCount())
		b = float(b, 5, s.GetSampleSum())
		for _, q := range s.GetQuantile() {
			b = message(b, 6, func(b []byte) []byte { return float(float(b, 1, q.GetQuantile()), 2, q.GetValue()) })
		}
		return b
	}
	v := m.GetGauge().GetValue()
	if f.GetType() == dto.MetricType_UNTYPED {
		v = m.GetUntyped().GetValue()
	}
	return float(fixed(labels(b, 7, m.GetLabel()), 3, uint64(w.at)), 4, v)
}

// histogram encodes a histogram by its classic buckets. Prometheus counts them cumulatively, OTLP individually.
func (w *metricsWriter) histogram(b []byte, f *dto.MetricFamily, m *dto.Metric) []byte {
	h := m.GetHistogram()
	b = w.times(b, f, m, float64(h.GetSampleCount()), h.GetCreatedTimestamp())
	b = fixed(b, 4, h.GetSampleCount())
	b = float(b, 5, h.GetSampleSum())
	var counts, bounds []byte
	below := uint64(0)
	for _, k := range h.GetBucket() {
		if !math.IsInf(k.GetUpperBound(), 1) {
			bounds = protowire.AppendFixed64(bounds, math.Float64bits(k.GetUpperBound()))
			counts = protowire.AppendFixed64(counts, k.GetCumulativeCount()-below)
			below = k.GetCumulativeCount()
		}
	}
	counts = protowire.AppendFixed64(counts, h.GetSampleCount()-below)
	b = raw(b, 6, counts)
	if len(bounds) > 0 {
		b = raw(b, 7, bounds)
	}
	for _, k := range h.GetBucket() {
		b = appendExemplar(b, 8, k.GetExemplar())
	}
	return b
}

// times encodes the start and the end of a series' counting.
func (w *metricsWriter) times(b []byte, f *dto.MetricFamily, m *dto.Metric, count float64, created *timestamppb.Timestamp) []byte {
	return fixed(fixed(b, 2, uint64(w.since.of(f.GetName(), m.GetLabel(), count, created))), 3, uint64(w.at))
}

// appendExemplar appends an exemplar with the trace in its labels.
func appendExemplar(b []byte, field protowire.Number, e *dto.Exemplar) []byte {
	if e == nil {
		return b
	}
	return message(b, field, func(b []byte) []byte {
		if e.GetTimestamp() != nil {
			b = fixed(b, 2, uint64(e.GetTimestamp().AsTime().UnixNano()))
		}
		b = float(b, 3, e.GetValue())
		for _, l := range e.GetLabel() {
			id, err := hex.DecodeString(l.GetValue())
			switch {
			case err == nil && l.GetName() == "trace_id" && len(id) == len(trace.ID{}):
				b = raw(b, 5, id)
			case err == nil && l.GetName() == "span_id" && len(id) == len(trace.SpanID{}):
				b = raw(b, 4, id)
			default:
				b = keyText(b, 7, l.GetName(), l.GetValue())
			}
		}
		return b
	})
}

// labels encodes the labels with values. An empty label is equivalent to none.
func labels(b []byte, field protowire.Number, all []*dto.LabelPair) []byte {
	for _, l := range all {
		b = keyText(b, field, l.GetName(), l.GetValue())
	}
	return b
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func fixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func float(b []byte, field protowire.Number, v float64) []byte {
	return fixed(b, field, math.Float64bits(v))
}

// starts records when series began. A series without a creation time began at the gather before its first, or at the start of the
// program for the first gather. A series that decreases began again at the gather before.
type starts struct {
	seed   maphash.Seed
	before instant // the previous gather
	at     instant
	round  uint64
	back   bool // the clock was set back: series with a creation time are recorded as well
	series map[uint64]started
}

type started struct {
	at    instant
	told  instant // creation time that the series itself reports
	count float64
	round uint64
}

func newStarts(now time.Time) *starts {
	return &starts{seed: maphash.MakeSeed(), before: instant(now.UnixNano()), series: make(map[uint64]started)}
}

func (s *starts) begin(at time.Time) {
	s.at = instant(at.UnixNano())
	s.round++
}

// end forgets series that no longer exist, only if the gather was complete. A series that was forgotten by mistake would return
// with its old count and a new start, and receivers that add up differences would count everything twice.
func (s *starts) end(whole bool) {
	if whole {
		for key, of := range s.series {
			if of.round != s.round {
				delete(s.series, key)
			}
		}
	}
	s.before = s.at
}

// of returns the start of a series. The start is never after this gather, even if the clock was set back. A series with a
// creation time in the future starts at the first gather that reports it, and keeps that start.
func (s *starts) of(name string, labels []*dto.LabelPair, count float64, created *timestamppb.Timestamp) instant {
	var told instant
	if created != nil {
		told = instant(created.AsTime().UnixNano())
		if s.back = s.back || told > s.at; !s.back {
			return told
		}
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(name)
	for _, l := range labels {
		_ = h.WriteByte(0xff) // a byte that does not occur in names and values
		h.WriteString(l.GetName())
		_ = h.WriteByte(0xff)
		h.WriteString(l.GetValue())
	}
	key := h.Sum64()
	of, known := s.series[key]
	switch {
	case created != nil && (!known || told != of.told):
		of.at, of.told = told, told
	case created == nil && (!known || count < of.count):
		of.at = s.before
	}
	of.at, of.count, of.round = min(of.at, s.at), count, s.round
	s.series[key] = of
	return of.at
}
