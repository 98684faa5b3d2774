package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/direct"
	"github.com/seed1158cd35/weir/sidecar/plain"
)

// A pipes is an in-memory network for virtual time. A dial creates a pipe between client and server. It is unbuffered:
// a writer blocks until the peer reads.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, errors.New("nobody listens")
	}
}

// A channel is a proxy with default policies between callers and a scripted upstream, in virtual time.
type channel struct {
	*testing.T
	in, up *pipes
}

// dig starts proxy and upstream. They end with the bubble.
func dig(t *testing.T, p weir.Policy, upstream http.HandlerFunc, change ...func(*Upstream)) *channel {
	t.Helper()
	c := &channel{t, newPipes(), newPipes()}
	u := Upstream{Name: "up", URL: &url.URL{Scheme: "http", Host: "upstream.test"}, Routes: []Route{{}}, Policy: p}
	for _, f := range change {
		f(&u)
	}
	proxy := newProxy(t, u)
	base := proxy.table.Load().targets["up"].base
	base.DialContext, base.sends.(*direct.Transport).Dial = c.up.dial, c.up.dial
	servers := []*http.Server{{Handler: proxy}, {Handler: upstream}}
	var wg sync.WaitGroup
	front := plain.New(c.in, servers[0]) // as in weir serve
	wg.Go(func() { _ = servers[0].Serve(front) })
	wg.Go(func() { _ = servers[1].Serve(c.up) })
	t.Cleanup(func() {
		for _, s := range servers {
			_ = s.Close()
		}
		base.CloseIdleConnections()
		wg.Wait()
		ended, end := context.WithCancel(context.Background())
		end()
		_ = front.Wait(ended)
	})
	return c
}

// send writes a request unchanged and returns the connection.
func (c *channel) send(head string) (net.Conn, *bufio.Reader) {
	c.Helper()
	conn, err := c.in.dial(c.Context(), "", "")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, head); err != nil {
		c.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(*testing.T)) { t.Helper(); synctest.Test(t, f) }

// late fails if most or more has passed since begun.
func (c *channel) late(what string, begun time.Time, most time.Duration) {
	c.Helper()
	if took := time.Since(begun); took > most {
		c.Errorf("%s took %v, want at most %v", what, took, most)
	} else {
		c.Logf("%s took %v", what, took)
	}
}

// A response that stalls for the policy's idle time is cut, and the caller sees that it is incomplete. A slow response
// that makes progress is not cut, unless it takes too long in total.
func TestAnAnswerThatStallsIsCut(t *testing.T) {
	for _, tt := range []struct {
		name     string
		timeouts weir.Timeouts
		every    time.Duration // interval between the pieces
		pieces   int           // how many pieces arrive before the stall
		most     time.Duration
		whole    bool
	}{
		{"by default", weir.Timeouts{}, time.Second, 3, 35 * time.Second, false},
		{"although the call has a time", weir.Timeouts{Call: 8 * time.Second}, time.Second, 3, 35 * time.Second, false},
		{"sooner", weir.Timeouts{Idle: 2 * time.Second}, time.Second, 3, 6 * time.Second, false},
		{"slow, but it comes", weir.Timeouts{}, 29 * time.Second, 20, 12 * time.Minute, true},
		{"slower than a body may be", weir.Timeouts{Body: time.Minute}, 20 * time.Second, 20, 61 * time.Second, false},
		{"not at all", weir.Timeouts{Idle: -1}, 5 * time.Minute, 20, 2 * time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := dig(t, weir.Policy{Timeouts: tt.timeouts}, func(w http.ResponseWriter, r *http.Request) {
					for range tt.pieces {
						_, _ = io.WriteString(w, "piece")
						_ = http.NewResponseController(w).Flush()
						select {
						case <-time.After(tt.every):
						case <-r.Context().Done():
							return
						}
					}
					if !tt.whole {
						<-r.Context().Done()
					}
				})
				begun := time.Now()
				_, in := c.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%v %v", resp, err)
				}
				body, err := io.ReadAll(resp.Body)
				c.late("the answer", begun, tt.most)
				if tt.whole != (err == nil) || tt.whole && len(body) != 5*tt.pieces {
					t.Errorf("read %d bytes, %v", len(body), err)
				}
			})
		})
	}
}

// An upload that stalls gets 408 after its timeout, whatever the upstream does, and the connection is closed.
func TestAnUploadThatStallsIsAnswered(t *testing.T) {
	patient := weir.Timeouts{Headers: 10 * time.Minute, Attempt: 10 * time.Minute, Call: 10 * time.Minute}
	hasty := weir.Timeouts{Call: 8 * time.Second}
	for _, tt := range []struct {
		name     string
		timeouts weir.Timeouts
		method   string
		most     time.Duration
		which    string
	}{
		{"by default", weir.Timeouts{}, "POST", 31 * time.Second, "(timeouts.upload_rate)"},
		{"by default, and it may be repeated", weir.Timeouts{}, "PUT", 31 * time.Second, "(timeouts.upload_rate)"},
		{"with a short call", hasty, "POST", 9 * time.Second, "(timeouts.call)"},
		{"with a long call", patient, "POST", 31 * time.Second, "(timeouts.upload_rate)"},
		{"with a long call, and it may be repeated", patient, "PUT", 31 * time.Second, "(timeouts.upload_rate)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := dig(t, weir.Policy{Timeouts: tt.timeouts}, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
				})
				begun := time.Now()
				_, in := c.send(tt.method + " /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbeginning")
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.late("the answer", begun, tt.most)
				text, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusRequestTimeout || err != nil || !strings.Contains(string(text), tt.which) {
					t.Errorf("%d %s %v, want %s", resp.StatusCode, text, err, tt.which)
				}
				if _, err := in.ReadByte(); err != io.EOF {
					t.Errorf("the connection: %v", err)
				}
				c.late("the end of the connection", begun, tt.most+lastRead) // lastRead drains what the caller still sends
			})
		})
	}
}

// A caller that does not read its response is cut off. A slow reader is not.
func TestACallerWhoDoesNotReadIsCutOff(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(fmt.Sprint("slow ", slow), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				left := make(chan time.Time, 1)
				c := dig(t, weir.Policy{}, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Length", "1000000")
					for i := range 100 {
						if _, err := w.Write(make([]byte, 10_000)); err != nil {
							break
						}
						if i == 0 { // the proxy flushes the beginning of a response again, under a lock
							_ = http.NewResponseController(w).Flush()
							time.Sleep(time.Second)
						}
					}
					left <- time.Now()
				})
				begun := time.Now()
				_, in := c.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.CopyN(io.Discard, resp.Body, 10_000)
				if slow {
					n := int64(10_000)
					for err == nil {
						var some int64
						some, err = io.CopyN(io.Discard, resp.Body, 50_000)
						n += some
						time.Sleep(20 * time.Second)
					}
					if n != 1_000_000 {
						t.Errorf("read %d bytes, %v", n, err)
					}
					return
				}
				if at := <-left; at.Sub(begun) > 45*time.Second {
					t.Errorf("the upstream was held for %v", at.Sub(begun))
				}
			})
		})
	}
}

// A connection stays usable after a slow response.
func TestAConnectionGoesOnAfterSlowBodies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := dig(t, weir.Policy{}, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d", len(b))
		})
		conn, in := c.send("")
		for range 3 {
			_, _ = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n")
			for range 3 {
				time.Sleep(4 * time.Second) // three of them take longer than an attempt
				_, _ = io.WriteString(conn, "x")
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 200 || string(text) != "3" || err != nil {
				t.Errorf("%d %s %v", resp.StatusCode, text, err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// greedy is a dialect that reads the complete body before admission.
type greedy struct{}

func (greedy) Hear(r *http.Request, _ string) (httpx.Exchange, *refuse.Facts) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return heard{}, httpx.BrokenBody(err)
	}
	r.Body = http.NoBody
	return heard{}, nil
}

type heard struct{}

func (heard) Describe(*weir.Call)         {}
func (heard) Attempt(*http.Request) error { return nil }
func (heard) Answered(_ *http.Response, o outcome.Outcome) outcome.Outcome {
	return o
}
func (heard) Refuse(w http.ResponseWriter, f *refuse.Facts) { f.Write(w) }

// A body that a dialect reads must make progress, and must be complete within a minute.
func TestABodyThatADialectReadsMustCome(t *testing.T) {
	for _, tt := range []struct {
		piece int
		every time.Duration
		most  time.Duration
	}{{5, time.Hour, 31 * time.Second}, {5, 20 * time.Second, 61 * time.Second}, {200, time.Second, 61 * time.Second}} { // the last one sends at the minimum rate
		bubble(t, func(t *testing.T) {
			c := dig(t, weir.Policy{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, func(u *Upstream) { u.Dialect = greedy{} })
			begun := time.Now()
			conn, in := c.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
			over := make(chan struct{})
			go func() {
				for {
					select {
					case <-time.After(tt.every):
						_, _ = io.WriteString(conn, strings.Repeat("p", tt.piece))
					case <-over:
						return
					}
				}
			}()
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.late("the answer", begun, tt.most)
			if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestTimeout {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("the connection: %v", err)
			}
			close(over)
		})
	}
}

// A slow upload is cut after half a minute and does not count against the upstream. On a route for streams it is
// permitted.
func TestAnUploadThatTricklesIsCut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Upstream)
		head   string
		status int
		after  time.Duration
	}{
		{"of a length", func(*Upstream) {}, "Content-Length: 200", 408, 32 * time.Second},
		{"of a length, and a dialect reads it", func(u *Upstream) { u.Dialect = greedy{} }, "Content-Length: 200", 408, 32 * time.Second},
		{"at a rate that the file lets pass", func(u *Upstream) { u.Policy.Timeouts.UploadRate = 1 }, "Content-Length: 200", 200, 59 * time.Second},
		{"on a route for streams", func(u *Upstream) { u.Routes = []Route{{Stream: true}} }, "Content-Length: 200", 200, 59 * time.Second},
		{"of gRPC", func(*Upstream) {}, "Content-Type: application/grpc\r\nContent-Length: 200", 200, 59 * time.Second},
		{"of a stream that is silent for minutes", func(u *Upstream) {
			u.Routes, u.Policy.Timeouts.Call, u.Policy.Timeouts.Attempt = []Route{{Stream: true}}, time.Hour, time.Hour
		}, "Content-Length: 202", 200, 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				policy := weir.Policy{Concurrency: weir.Concurrency{Limit: 1}}
				c := dig(t, policy, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
				}, tt.change)
				begun := time.Now()
				conn, in := c.send("POST /x HTTP/1.1\r\nHost: localhost\r\n" + tt.head + "\r\n\r\nab")
				var writes sync.WaitGroup
				defer writes.Wait()
				defer conn.Close()
				writes.Go(func() {
					for range 99 {
						time.Sleep(500 * time.Millisecond)
						if _, err := io.WriteString(conn, "ab"); err != nil {
							return
						}
					}
					if tt.after > time.Minute {
						time.Sleep(9 * time.Minute)
						_, _ = io.WriteString(conn, "ab")
					}
				})
				time.Sleep(5 * time.Second) // the upload has released the only slot
				_, other := c.send("GET /y HTTP/1.1\r\nHost: localhost\r\n\r\n")
				if resp, err := http.ReadResponse(other, nil); err != nil || resp.StatusCode != 200 || time.Since(begun) > 5100*time.Millisecond {
					if !strings.Contains(tt.name, "dialect") {
						t.Errorf("another call: %v, %v after %v", resp, err, time.Since(begun))
					}
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != tt.status {
					t.Fatalf("%v, %v, want %d", resp, err, tt.status)
				}
				c.late("the answer", begun, tt.after)
			})
		})
	}
}
