package weirprom

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

var subject = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711"}

// BenchmarkEvent measures what an event costs the call that it is about.
func BenchmarkEvent(b *testing.B) {
	e := New(prometheus.NewRegistry()).Events()
	refusal := &weir.Refusal{Reason: weir.RateLimited}
	events := []struct {
		name string
		tell func()
	}{
		{"allowed", func() { e.Decided(weir.Decided{Subject: subject}) }},
		{"waited", func() { e.Decided(weir.Decided{Subject: subject, Limit: "put", Waited: time.Second}) }},
		{"refused", func() { e.Decided(weir.Decided{Subject: subject, Limit: "put", Refusal: refusal}) }},
		{"ended", func() {
			e.Ended(weir.Ended{Subject: subject, Outcome: outcome.Outcome{Class: outcome.OK}, Took: 30 * time.Millisecond})
		}},
		{"retried", func() { e.Retried(weir.Retried{Subject: subject, Outcome: outcome.Outcome{Class: outcome.Failed}}) }},
		{"done", func() { e.Done(weir.Done{Subject: subject, Class: outcome.OK, Took: 30 * time.Millisecond}) }},
	}
	for _, event := range events {
		b.Run(event.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				event.tell()
			}
		})
	}
}

// BenchmarkNative is what the native half of a histogram adds to the classic one.
func BenchmarkNative(b *testing.B) {
	for name, factor := range map[string]float64{"classic": 0, "native": 1.1} {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: buckets, NativeHistogramBucketFactor: factor})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.Observe(.03)
			}
		})
	}
}
