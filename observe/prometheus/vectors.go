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
		retries: counter("weir_retries_total", "Failed attempts that will be repeated.",
			"upstream", "operation", "class"),
		heldBack: counter("weir_retries_held_back_total", "Due retries that were not sent because ten attempts in a row had failed.",
			"upstream", "operation"),
		gaveUp: counter("weir_given_up_calls_total", "Calls that failed although another attempt might have succeeded.",
			"upstream", "operation", "reason"),
		breaker: counter("weir_breaker_transitions_total", "Changes of a breaker's state.",
			"upstream", "from", "to"),
		pauses: counter("weir_pauses_total", "Pauses that began or were extended.",
			"upstream", "operation", "limit", "by"),
		lifted: counter("weir_pauses_lifted_total", "Pauses that were ended early.",
			"upstream", "by"),
		damaged: counter("weir_pause_records_damaged_total", "Invalid pause records in the store, which weir ignored.",
			"upstream"),
		paces: counter("weir_rate_changes_total", "Changes of an adaptive rate, up or down.",
			"upstream", "limit", "direction"),
		violations: counter("weir_violations_total", "Attempts that the upstream throttled although their limits had allowed them, for each limit of the call.",
			"upstream", "operation", "limit"),
		failedOpen: counter("weir_jobs_failed_open_total", "Jobs that were allowed although weir could not count the running jobs.",
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
