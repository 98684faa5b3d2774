package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime/debug"
	"sync"
	"time"
)

// play serves as one of the processes of a measurement. It prints its port.
func play(role, to string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	switch role {
	case "upstream":
		return upstream(l)
	case "bare":
		return bare(l, to)
	case "spared": // collects garbage as rarely as weir does
		debug.SetGCPercent(800)
		return bare(l, to)
	case "gather":
		return gather(l, to)
	case "answer":
		return http.Serve(l, http.HandlerFunc(same))
	case "grpc":
		return undecided(l)
	}
	return fmt.Errorf("no role %q", role)
}

// bare is a minimal, tuned proxy of net/http: it keeps its connections, reuses buffers, and leaves bodies unchanged.
func bare(l net.Listener, to string) error {
	at, err := url.Parse("http://" + to)
	if err != nil {
		return err
	}
	next := reverse(at)
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // otherwise a stream that starts before the end of its request is sometimes truncated
			_ = http.NewResponseController(w).EnableFullDuplex()
		}
		next.ServeHTTP(w, r)
	}))
}

func reverse(at *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(at) },
		Transport:  &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true},
		BufferPool: &buffers{},
	}
}

// gather is a bare proxy that buffers a request's body, so that it could be sent again.
func gather(l net.Listener, to string) error {
	at, err := url.Parse("http://" + to)
	if err != nil {
		return err
	}
	next := reverse(at)
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}))
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }

// same reads a request and returns as many bytes as weir's own response: the floor of responses by weir.
func same(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	switch r.URL.Path {
	case "/v1/acquire":
		_, _ = w.Write(granted)
	case "/v1/report":
		_, _ = w.Write(reported)
	default:
		h["Retry-After"], h["Retry-After-Ms"], h["X-Weir-Refused"] = second, second, second
		_, _ = w.Write(refused)
	}
}

var (
	granted  = []byte(`{"permit":"OAMRQUKEFPP43AZYDG3IA4YRBP","expires_at":"2026-11-21T08:01:00Z","waited_ms":0,"limits":[{"limit":"all","unit":"requests","left":999999,"full":1000000,"reset_ms":1,"reset_at":"2026-11-21T08:00:00.001Z"}]}` + "\n")
	reported = []byte("{}\n")
	refused  = []byte(`{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"tight: rate_limited by limit all, come back in 59m59s","details":{"limit":"all","limits":[{"limit":"all","unit":"requests","left":0,"full":1,"reset_ms":3599000,"reset_at":"2026-11-21T08:00:00.001Z"}],"operation":"default","reason":"rate_limited","remaining":0,"reset_at":"2026-11-21T08:00:00.001Z","retry_after_ms":3599000,"upstream":"tight"}}}` + "\n")
	second   = []string{"1"}
)
