package weirprom

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	sharded "github.com/seed1158cd35/weir/internal/counter"
)

// An Exemplar is a call whose trace is kept. It leads from a slow bucket to a trace that explains it.
type Exemplar struct {
	Upstream string
	Result   string // the label value in weir_calls_total
	Trace    string // trace ID
	Took     time.Duration
	At       time.Time
}

// exemplars are the latest exemplars of a series: one for each bucket and one for longer durations.
type exemplars [len(sharded.Bounds) + 1]*dto.Exemplar

// traceLabel is the label that servers look for in an exemplar.
const traceLabel = "trace_id"

// Exemplar attaches a call to its bucket of weir_call_duration_seconds, until a later call replaces it. Call it only for traces
// that are kept, and outside the path of a request. Calls of upstreams that are not counted are ignored.
func (m *Metrics) Exemplar(e Exemplar) {
	i := 0
	for i < len(sharded.Bounds) && e.Took > sharded.Bounds[i] {
		i++
	}
	name, result := label(e.Upstream), label(e.Result)
	example := &dto.Exemplar{
		Label: []*dto.LabelPair{{Name: new(traceLabel), Value: new(label(e.Trace))}}, Value: new(e.Took.Seconds()), Timestamp: timestamppb.New(e.At),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counted[name] == nil {
		return
	}
	if m.exemplars[name] == nil {
		m.exemplars[name] = make(map[string]*exemplars)
	}
	if m.exemplars[name][result] == nil {
		m.exemplars[name][result] = new(exemplars)
	}
	m.exemplars[name][result][i] = example
}

// put adds the exemplars to a histogram, for servers that read classic buckets and for servers that read native ones.
func (e *exemplars) put(h *dto.Histogram) {
	for i, one := range e {
		switch {
		case one == nil:
			continue
		case i < len(h.Bucket):
			h.Bucket[i].Exemplar = one
		default:
			h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: h.SampleCount, UpperBound: new(math.Inf(1)), Exemplar: one})
		}
		h.Exemplars = append(h.Exemplars, one)
	}
}
