package proxy

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// BenchmarkProxy measures a request with a response of 1 KiB over loopback: directly to the upstream, through a tuned
// httputil.ReverseProxy (bare), and through weir with a limit, a breaker and retries. It reports the median of a
// request. Compare weir with bare in one run.
func BenchmarkProxy(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(kilobyte)
	}))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	ways := []struct {
		name string
		url  string
	}{
		{"direct", upstream.URL},
		{"bare", start(b, bareProxy(target))},
		{"weir", start(b, weirProxy(b, target))},
	}
	for _, connections := range []int{1, 64} {
		for _, way := range ways {
			b.Run(way.name+"/connections="+itoa(connections), func(b *testing.B) { load(b, way.url, connections) })
		}
	}
}

var kilobyte = bytes.Repeat([]byte("0123456789abcdef"), 64)

func itoa(n int) string {
	if n == 1 {
		return "1"
	}
	return "64"
}

func start(b *testing.B, h http.Handler) string {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return s.URL
}

func bareProxy(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     httpx.NewBase(weir.Timeouts{}, 256),
		FlushInterval: -1,
		BufferPool:    buffers{},
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

func weirProxy(b *testing.B, target *url.URL) http.Handler {
	p, err := New([]Upstream{{
		Name: "up", URL: target, Routes: []Route{{}},
		Policy: weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second}}}},
	}}, weir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// load sends b.N requests over the given number of connections.
func load(b *testing.B, url string, connections int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	took := make([][]time.Duration, connections)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range connections {
		wg.Go(func() {
			buf := make([]byte, 2048)
			for n := i; n < b.N; n += connections {
				begun := time.Now()
				resp, err := client.Get(url + "/a/b?c=d")
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{resp.Body}, buf)
				_ = resp.Body.Close()
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
