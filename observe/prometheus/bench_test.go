package weirprom

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

var subject = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711"}

// BenchmarkEvent measures the cost of an event for its call.
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

// BenchmarkNative measures the cost that native buckets add to a classic histogram.
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

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScrapeOfKeys measures a complete scrape over HTTP, with gzip, of a limit whose keys are labels.
func BenchmarkScrapeOfKeys(b *testing.B) {
	for _, keys := range []int{0, mostKeys, 10 * mostKeys} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			u, m, _ := labelledUpstream(b)
			for i := range keys {
				takeFor(b, u, fmt.Sprintf("hmac:%016x", uint64(i)*0x9e3779b97f4a7c15), 1+int64(i%9))
			}
			reg := prometheus.NewRegistry()
			reg.MustRegister(collector{m})
			server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
			defer server.Close()
			var size int64
			before := cpu()
			for b.Loop() {
				r, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
				r.Header.Set("Accept-Encoding", "gzip") // so that the client does not decompress the response
				r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
				resp, err := server.Client().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				size, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
					b.Fatal(resp.Status, resp.Header, err)
				}
			}
			b.ReportMetric((cpu()-before).Seconds()*1000/float64(b.N), "cpu-ms/scrape")
			b.ReportMetric(float64(size), "B/scrape")
		})
	}
}
