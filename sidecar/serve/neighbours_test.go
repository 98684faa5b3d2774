package serve

import (
	"bufio"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// hostile are requests with which one caller might make weir count failures of the upstream. After those that are called
// "leaves", the caller disconnects.
var hostile = map[string]string{
	"method with a NUL":          "GE\x00T /up/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"odd method":                 "G!#$%&'*+-.^_`|~ET /up/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"unknown method":             "FROB /up/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"CONNECT":                    "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
	"upgrade to something":       "GET /up/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
	"upgrade to h2c":             "GET /up/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
	"websocket without a key":    "GET /up/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"headers above the limit":    "GET /up/ HTTP/1.1\r\nHost: localhost\r\nA: " + strings.Repeat("x", 200<<10) + "\r\n\r\n",
	"many headers":               "GET /up/ HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("A: x\r\n", 30_000) + "\r\n",
	"long path":                  "GET /up/" + strings.Repeat("x", 200<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"long query":                 "GET /up/?" + strings.Repeat("x", 200<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"trailers above the limit":   "POST /up/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\nx\r\n0\r\nA: " + strings.Repeat("x", 200<<10) + "\r\n\r\n",
	"name of a trailer":          "POST /up/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: a b\r\n\r\n1\r\nx\r\n0\r\na b: y\r\n\r\n",
	"forbidden trailer":          "POST /up/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n1\r\nx\r\n0\r\nContent-Length: 7\r\n\r\n",
	"broken chunk":               "POST /up/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
	"leaves within the body":     "POST /up/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
	"body that stalls":           "POST /stall/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
	"large body that stalls":     "POST /stall/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\nx",
	"chunks that stall":          "POST /stall/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
	"expectation":                "POST /up/ HTTP/1.1\r\nHost: localhost\r\nExpect: wonders\r\nContent-Length: 1\r\n\r\nx",
	"expectation, body withheld": "POST /up/ HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
	"coding of the transfer":     "POST /up/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"TE":                         "GET /up/ HTTP/1.1\r\nHost: localhost\r\nTE: trailers, deflate;q=0.5\r\nConnection: TE, close\r\n\r\n",
	"version 1.0":                "GET /up/ HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
	"host with a space":          "GET /up/ HTTP/1.1\r\nHost: local host\r\n\r\n",
	"no time":                    "POST /llm/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Weir-Timeout: 0.001\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}",
	"no time of an SDK":          "POST /llm/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Stainless-Timeout: 0.001\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}",
	"negative time":              "POST /llm/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Weir-Timeout: -1\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}",
	"leaves":                     "GET /slow/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"leaves a stream":            "GET /stream/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"leaves unread":              "GET /endless/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
}

// A caller can make weir send, or refuse, any number of such requests: other callers are served without delay.
func TestNoRequestOfOneCallerStopsOthers(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		for name, text := range hostile {
			t.Run(scheme+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := memnet.New()
					defer time.Sleep(time.Minute) // handlers of the upstream end
					defer n.Close()
					defer serveBoth(n, "api.test", http.HandlerFunc(neighbourly))()
					up := scheme + "://api.test"
					defer serveInside(t, n, "upstreams:\n"+
						"  up: {url: \""+up+"\", routes: [{path: /up/, strip: true}, {path: /slow/}, {path: /stall/}, {path: /stream/}, {path: /endless/}]}\n"+
						"  llm: {url: \""+up+"\", llm: {family: openai}}\n")()
					c := &http.Client{Transport: n.Transport()}
					for range 60 {
						conn, err := n.Dial(t.Context(), "tcp", "localhost:80")
						if err != nil {
							t.Fatal(err)
						}
						go func() { _, _ = io.WriteString(conn, text) }()
						if strings.HasPrefix(name, "leaves") {
							time.Sleep(5 * time.Millisecond)
						} else if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && strings.Contains(name, "no time") && resp.StatusCode != http.StatusGatewayTimeout {
							t.Fatalf("a call without time: %s", resp.Status)
						}
						_ = conn.Close()
						time.Sleep(50 * time.Millisecond)
					}
					for target, body := range map[string]string{"/up/": "", "/llm/v1/chat/completions": `{"model":"m","messages":[]}`} {
						begin := time.Now()
						got, answer := callAs(t, c, "", "POST", target, body, func(h http.Header) { h.Set("Content-Type", "application/json") })
						if took := time.Since(begin); got != http.StatusOK || took > 100*time.Millisecond {
							t.Errorf("another caller of %s gets %d after %v: %s", target, got, took, answer)
						}
					}
				})
			})
		}
	}
}

// neighbourly is an upstream for hostile requests. It answers fast where the path does not ask for something else.
func neighbourly(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case r.Method == "FROB":
		w.WriteHeader(http.StatusNotImplemented)
	case strings.HasPrefix(path, "/v1"):
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"a","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	case strings.HasPrefix(path, "/slow"):
		time.Sleep(20 * time.Millisecond)
	case strings.HasPrefix(path, "/stream"):
		for range 10 {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	case strings.HasPrefix(path, "/endless"):
		for range 10_000 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	default:
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// serveBoth serves HTTP/1.1 and HTTP/2 without TLS, and accepts headers of 8 KiB.
func serveBoth(n *memnet.Network, host string, h http.Handler) (stop func()) {
	s := &http.Server{Handler: h, MaxHeaderBytes: 8 << 10, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	l := n.Listen(host)
	go func() { _ = s.Serve(l) }()
	return func() { _ = s.Close() }
}

// A caller whose request is the probe of an open breaker cannot keep the breaker open for others.
func TestProbeOfOneCallerDoesNotHoldOthers(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		for name, text := range hostile {
			t.Run(scheme+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := memnet.New()
					defer time.Sleep(time.Minute)
					defer n.Close()
					var down atomic.Bool
					down.Store(true)
					defer serveBoth(n, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if down.Load() {
							w.WriteHeader(http.StatusInternalServerError)
							return
						}
						neighbourly(w, r)
					}))()
					defer serveInside(t, n, "upstreams: {up: {url: \""+scheme+"://api.test\", retry: off, max_wait: off, routes: [{path: /up/, strip: true}, {path: /slow/}, {path: /stall/}, {path: /stream/}, {path: /endless/}]}}\n")()
					c := &http.Client{Transport: n.Transport()}
					for range 40 {
						ask(t, c, "", func(*http.Request) {})
					}
					down.Store(false)
					time.Sleep(time.Minute)
					conn, err := n.Dial(t.Context(), "tcp", "localhost:80")
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						_, _ = io.WriteString(conn, text)
						_, _ = conn.Read(make([]byte, 100))
					}()
					begin := time.Now()
					for time.Sleep(time.Millisecond); ; time.Sleep(10 * time.Millisecond) {
						got, _ := ask(t, c, "", func(*http.Request) {})
						if got == http.StatusOK {
							break
						}
						if time.Since(begin) > 1500*time.Millisecond {
							t.Fatalf("another caller gets %d after %v", got, time.Since(begin))
						}
					}
					_ = conn.Close()
				})
			})
		}
	}
}

// A probe whose upstream falls silent within the response is not over: no other call is sent meanwhile.
func TestSilentProbeKeepsTheBreakerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer time.Sleep(time.Minute)
		defer n.Close()
		var down, came atomic.Int64
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			came.Add(1)
			if down.Load() > 0 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Second)
		}))
		defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", retry: off, max_wait: off}}\n")()
		c := &http.Client{Transport: n.Transport()}
		down.Store(1)
		for range 40 {
			ask(t, c, "", func(*http.Request) {})
		}
		down.Store(0)
		time.Sleep(time.Minute)
		before := came.Load()
		go func() {
			if resp, err := c.Get("http://localhost/up/"); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
		for range 10 {
			time.Sleep(time.Second)
			ask(t, c, "", func(*http.Request) {})
		}
		if sent := came.Load() - before; sent != 1 {
			t.Errorf("%d calls were sent, want the probe alone", sent)
		}
		time.Sleep(time.Minute)
	})
}
