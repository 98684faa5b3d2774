package decide

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const benchBody = `{"upstream":"api","keys":{"tenant":"acme"},"cost":{"tokens":0},"wait":"2s"}`

// BenchmarkHandler measures an acquire and its report without the network.
func BenchmarkHandler(b *testing.B) {
	h := server(b, upstream(b, "api", wide())).Handler()
	b.ReportAllocs()
	for b.Loop() {
		id := granted(b, serve(h, "/v1/acquire", benchBody).Body)
		serve(h, "/v1/report", `{"permit":"`+id+`","outcome":"ok"}`)
	}
}

// BenchmarkLoopback measures the same over loopback, including the client.
func BenchmarkLoopback(b *testing.B) {
	l := httptest.NewServer(server(b, upstream(b, "api", wide())).Handler())
	defer l.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := http.Post(l.URL+"/v1/acquire", "application/json", strings.NewReader(benchBody))
			if err != nil {
				b.Error(err)
				return
			}
			id := granted(b, resp.Body)
			_ = resp.Body.Close()
			if resp, err = http.Post(l.URL+"/v1/report", "application/json", strings.NewReader(`{"permit":"`+id+`","outcome":"ok"}`)); err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
