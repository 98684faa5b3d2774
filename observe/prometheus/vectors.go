package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	sharded "github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/observe/metric"
)

type vectors struct {
	retries, heldBack, gaveUp, breaker, pauses, lifted, damaged, paces, violations, failedOpen *prometheus.CounterVec
}

func newVectors() vectors {
	return vectors{
		retries:    counter("weir_retries_total"),
		heldBack:   counter("weir_retries_suppressed_total"),
		gaveUp:     counter("weir_calls_given_up_total"),
		breaker:    counter("weir_breaker_transitions_total"),
		pauses:     counter("weir_pauses_total"),
		lifted:     counter("weir_pauses_ended_total"),
		damaged:    counter("weir_pause_records_damaged_total"),
		paces:      counter("weir_rate_changes_total"),
		violations: counter("weir_violations_total"),
		failedOpen: counter("weir_jobs_failed_open_total"),
	}
}

func counter(name string) *prometheus.CounterVec {
	m := metric.Get(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: m.Help}, m.Labels)
}

// buckets are sharded.Bounds in seconds: from 1 ms to a minute.
var buckets = func() (all []float64) {
	for _, bound := range sharded.Bounds {
		all = append(all, bound.Seconds())
	}
	return all
}()

// histogram returns a classic histogram that is also native, for servers that request it. Native buckets distinguish durations
// that differ by a tenth.
func histogram(name string) *prometheus.HistogramVec {
	m := metric.Get(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: m.Help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: mostBuckets,
	}, m.Labels)
}

func numbers(name string) *prometheus.HistogramVec {
	m := metric.Get(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: m.Help, Buckets: []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
	}, m.Labels)
}

// A vector is the common interface of counters and histograms.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func (v *vectors) all() []vector {
	return []vector{
		v.retries, v.heldBack, v.gaveUp, v.breaker, v.pauses, v.lifted, v.damaged, v.paces, v.violations, v.failedOpen,
	}
}
