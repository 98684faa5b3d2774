package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// crowds are connections of which one caller opens as many as it can, and leaves them open. TOKEN stands for its token.
var crowds = map[string]string{
	"tunnels":           "GET /up/tunnel HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
	"websockets":        "GET /ws/tunnel HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	"nothing":           "",
	"half a line":       "GET /up/",
	"half a head":       "GET /up/ HTTP/1.1\r\nHost: localhost\r\nA: ",
	"half a body":       "POST /up/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\nContent-Length: 100\r\n\r\nx",
	"half a large body": "POST /up/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\nContent-Length: 100000000\r\n\r\nx",
	"half a chunk":      "POST /up/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx",
	"no token":          "POST /up/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
	"wrong token":       "POST /up/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: wrong\r\nContent-Length: 100\r\n\r\nx",
	"unread":            "GET /up/endless HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\n\r\n",
	"stalled":           "GET /up/stall HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\n\r\n",
	"stalled, pipeline": strings.Repeat("GET /up/stall HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\n\r\n", 10),
	"kept alive":        "GET /up/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\n\r\n",
	"preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	"limited":           "GET /slow/ HTTP/1.1\r\nHost: localhost\r\nX-Weir-Token: TOKEN\r\n\r\n",
}

// Whatever one caller opens and leaves open, another caller behind the same address is served.
func TestConnectionsOfOneCallerStopNoOther(t *testing.T) {
	for name, text := range crowds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer time.Sleep(5 * time.Minute)
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case strings.HasSuffix(r.URL.Path, "/tunnel"):
						w.Header().Set("Connection", "Upgrade")
						w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
						w.Header().Set("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
						w.WriteHeader(http.StatusSwitchingProtocols)
						conn, _, err := http.NewResponseController(w).Hijack()
						if err == nil {
							_, _ = io.Copy(conn, conn)
							_ = conn.Close()
						}
					case strings.HasSuffix(r.URL.Path, "/stall"):
						<-r.Context().Done()
					case strings.HasSuffix(r.URL.Path, "/endless"):
						for {
							if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
								return
							}
						}
					default:
						_, _ = io.Copy(io.Discard, r.Body)
					}
				}))
				defer serveInside(t, n, twoTokens+"bounds: {connections: 200, requests: 100, streams: 20}\nupstreams:\n"+
					"  up: {url: \""+up+"\"}\n  ws: {url: \""+up+"\", routes: [{path: /ws/, websocket: true}]}\n"+
					"  slow: {url: \""+up+"\", limits: {all: {rate: 1/min, burst: 1}}, max_wait: 1h, keys: {caller: caller}, fair: {by: caller}}\n  calm: {url: \""+up+"\"}\n")()
				token, _ := insideEnv("TOKEN_A")
				text := strings.ReplaceAll(text, "TOKEN", token)
				for range 500 {
					conn, err := n.Dial(t.Context(), "tcp", "localhost:80")
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					go func() { _, _ = io.WriteString(conn, text) }()
					go func() { _, _ = http.ReadResponse(bufio.NewReader(conn), nil) }()
					time.Sleep(time.Millisecond)
				}
				for _, target := range []string{"/calm/", "/up/"} {
					c := &http.Client{Transport: n.Transport()}
					begin := time.Now()
					r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://localhost"+target, nil)
					other, _ := insideEnv("TOKEN_B")
					r.Header.Set("X-Weir-Token", other)
					resp, err := c.Do(r)
					got := fmt.Sprint(err)
					if err == nil {
						b, _ := io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						if got = resp.Status + string(b[:min(len(b), 100)]); resp.StatusCode == 200 {
							got = ""
						}
					}
					if took := time.Since(begin); got != "" || took > 200*time.Millisecond {
						t.Errorf("another caller of %s gets %s after %v", target, got, took)
					}
				}
			})
		})
	}
}

// Calls of one caller that hang take slots of the upstream, and fail later. Another caller gets the slots that become free, and
// the breaker stays closed for it.
func TestHangingCallsOfOneCallerStopNoOther(t *testing.T) {
	for _, c := range []struct {
		concurrency string
		served      int // of 40 calls, at least
	}{{"auto", 40}, {"off", 40}, {"20", 4}} { // a fixed bound may be taken by one caller until its calls end
		t.Run(c.concurrency, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer time.Sleep(5 * time.Minute)
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "/hang") {
						<-r.Context().Done()
					}
					time.Sleep(10 * time.Millisecond)
				}))
				defer serveInside(t, n, twoTokens+"upstreams: {up: {url: \""+up+"\", concurrency: "+c.concurrency+"}}\n")()
				client := &http.Client{Transport: n.Transport()}
				call := func(ctx context.Context, token, target string) (*http.Response, error) {
					r, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost"+target, nil)
					value, _ := insideEnv(token)
					r.Header.Set("X-Weir-Token", value)
					resp, err := client.Do(r)
					if err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
					return resp, err
				}
				ctx, stop := context.WithCancel(t.Context())
				for range 60 {
					go func() {
						for ctx.Err() == nil {
							_, _ = call(ctx, "TOKEN_A", "/up/hang")
							time.Sleep(200 * time.Millisecond)
						}
					}()
				}
				time.Sleep(100 * time.Millisecond)
				served := 0
				for range 40 {
					begin := time.Now()
					resp, err := call(t.Context(), "TOKEN_B", "/up/")
					switch {
					case err != nil:
						t.Fatal(err)
					case resp.StatusCode == http.StatusOK:
						served++
					case resp.Header.Get("X-Weir-Refused") != "concurrency_limited":
						t.Errorf("another caller gets %s %v", resp.Status, resp.Header)
					}
					if took := time.Since(begin); took > 3*time.Second {
						t.Errorf("another caller waits for %v", took)
					}
					time.Sleep(time.Second)
				}
				if served < c.served {
					t.Errorf("%d of 40 calls of another caller are served, want %d", served, c.served)
				}
				stop()
			})
		})
	}
}

// Callers that wait for a fixed number of slots get them in turn: 20 waiting calls of one caller delay each call of
// another caller by the present calls, and not by 20. They do not shorten its wait either: their queue never empties.
func TestFixedSlotsGoInTurnByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = 300 * time.Millisecond
		n := memnet.New()
		defer time.Sleep(5 * time.Minute)
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(work) }))
		defer serveInside(t, n, twoTokens+"upstreams: {up: {url: \""+up+"\", concurrency: 2}}\n")()
		client := &http.Client{Transport: n.Transport()}
		call := func(token string) string {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/up/", nil)
			value, _ := insideEnv(token)
			r.Header.Set("X-Weir-Token", value)
			resp, err := client.Do(r)
			if err != nil {
				return err.Error()
			}
			_ = resp.Body.Close()
			return resp.Status
		}
		var over atomic.Bool
		var wg sync.WaitGroup
		for range 22 {
			wg.Go(func() {
				for !over.Load() {
					_ = call("TOKEN_A")
				}
			})
		}
		time.Sleep(time.Second / 4)
		for range 20 {
			begin := time.Now()
			if got, took := call("TOKEN_B"), time.Since(begin); got != "200 OK" || took > 2*work+work/10 {
				t.Errorf("the other caller gets %s after %v, want 200 OK within %v", got, took, 2*work)
			}
		}
		over.Store(true)
		wg.Wait()
	})
}
