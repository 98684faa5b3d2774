package httpx_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// The cost of a request in this package: the base responds immediately, without a network.
func BenchmarkTransport(b *testing.B) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	base := trip(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		return response(200, http.NoBody), nil
	})
	in := steady()
	in.Concurrency.Auto = true
	for _, c := range []struct {
		name   string
		policy weir.Policy
		body   func() io.Reader
	}{
		{"get", steady(), nil},
		{"put", steady(), func() io.Reader { return strings.NewReader("hello") }},
		{"stream", steady(), func() io.Reader { return io.NopCloser(strings.NewReader("hello")) }},
		{"get, in flight", in, nil},
		{"stream, in flight", in, func() io.Reader { return io.NopCloser(strings.NewReader("hello")) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			tr := httpx.NewTransport(open(b, c.policy, weir.Options{}), base)
			for b.Loop() {
				method, body := http.MethodGet, io.Reader(nil)
				if c.body != nil {
					method, body = http.MethodPut, c.body()
				}
				resp, err := tr.RoundTrip(request(b, ctx, method, body))
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}
