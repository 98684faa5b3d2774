package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// Retries of two weirs do not multiply: the outer weir does not retry what the inner one gave up.
func TestTwoWeirsMakeTheAttemptsOfOne(t *testing.T) {
	for status, want := range map[int]int64{http.StatusServiceUnavailable: 3, http.StatusTooManyRequests: 3, http.StatusNotFound: 1} {
		var got atomic.Int64
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			got.Add(1)
			w.WriteHeader(status)
		}))
		front := behind(t, behind(t, upstream.URL))
		resp, err := http.Get(front + "/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status || got.Load() != want {
			t.Errorf("%d: the upstream got %d requests, the caller %d; want %d", status, got.Load(), resp.StatusCode, want)
		}
		upstream.Close()
	}
}

// behind returns the address of a weir in front of address.
func behind(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New([]Upstream{{Name: "up", URL: target, Routes: []Route{{}}, Policy: weir.Policy{
		Retry: retry.Config{Base: time.Millisecond}, // keeps the test fast
	}}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s.URL
}
