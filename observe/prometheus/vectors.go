package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	sharded "github.com/seed1158cd35/weir/internal/counter"
)

// vectors are the metrics that events feed.
type vectors struct {
	retries, heldBack, gaveUp, breaker, pauses, lifted, damaged, paces, violations, failedOpen *prometheus.CounterVec
}

func newVectors() vectors {
	return vectors{
		retries: counter("weir_retries_total", "Attempts that failed and are to be repeated, by class of outcome.",
			"upstream", "operation", "class"),
		heldBack: counter("weir_retries_held_back_total", "Retries that were not sent when their time had come, because nothing succeeded.",
			"upstream", "operation"),
		gaveUp: counter("weir_given_up_calls_total", "Calls that failed for good though another attempt might have helped, by why there was none.",
			"upstream", "operation", "reason"),
		breaker: counter("weir_breaker_transitions_total", "Changes of a breaker's state.",
			"upstream", "from", "to"),
		pauses: counter("weir_pauses_total", "Pauses that began or became longer, by who said so.",
			"upstream", "operation", "limit", "by"),
		lifted: counter("weir_pauses_lifted_total", "Pauses that were lifted before their time, by who said so.",
			"upstream", "by"),
		damaged: counter("weir_pause_records_damaged_total", "Records of pauses in the store that held what cannot be.",
			"upstream"),
		paces: counter("weir_rate_changes_total", "Times that a rate that learns went up or down.",
			"upstream", "limit", "direction"),
		violations: counter("weir_violations_total", "Attempts that the upstream throttled although its limits had allowed them.",
			"upstream", "operation", "limit"),
		failedOpen: counter("weir_jobs_failed_open_total", "Jobs that were let start although the upstream could not be asked how many there are.",
			"upstream"),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// buckets are counter.Bounds, in seconds. They tell apart what people wait for: 1 ms to a minute.
var buckets = func() (all []float64) {
	for _, bound := range sharded.Bounds {
		all = append(all, bound.Seconds())
	}
	return all
}()

// A histogram is native, too, for servers that ask for that, and tells durations apart
// that differ by a tenth.
func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: mostBuckets,
	}, labels)
}

// numbers is a histogram of small numbers.
func numbers(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
	}, labels)
}

// A vector is what counters and histograms have in common.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func (v *vectors) all() []vector {
	return []vector{
		v.retries, v.heldBack, v.gaveUp, v.breaker, v.pauses, v.lifted, v.damaged, v.paces, v.violations, v.failedOpen,
	}
}
