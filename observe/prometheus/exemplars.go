package weirprom

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	sharded "github.com/seed1158cd35/weir/internal/counter"
)

// An Exemplar is a call whose trace is kept: where to look for why calls take as long as they do.
type Exemplar struct {
	Upstream string
	Result   string // as weir_calls_total has it
	Trace    string // its ID
	Took     time.Duration
	At       time.Time
}

// exemplars are the latest of a series, for each bucket and for what is beyond all.
type exemplars [len(sharded.Bounds) + 1]*dto.Exemplar

// traceLabel is what servers look for in an exemplar.
const traceLabel = "trace_id"

// Exemplar shows a call in the bucket of weir_call_duration_seconds that it was counted in, until there is a later one. Call
// it for traces that are kept alone, and where nobody waits. What is of no upstream that is counted is not shown.
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

// put puts them into a histogram, for servers that read its buckets and for those that read the native ones.
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
