package weirprom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

var subject = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711"}

// BenchmarkEvent measures what an event costs the call that it is about.
func BenchmarkEvent(b *testing.B) {
	e := New(prometheus.NewRegistry()).Events()
	events := []struct {
		name string
		tell func()
	}{
		{"retried", func() { e.Retried(weir.Retried{Subject: subject, Outcome: outcome.Outcome{Class: outcome.Failed}}) }},
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
