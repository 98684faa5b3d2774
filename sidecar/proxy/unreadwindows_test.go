package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// over2 serves a proxy and an HTTP/2 upstream, in a bubble.
func over2(t *testing.T, upstream http.HandlerFunc, change func(*Upstream)) (front *pipes) {
	t.Helper()
	in, up := newPipes(), newPipes()
	u := Upstream{Name: "up", URL: &url.URL{Scheme: "http", Host: "upstream.test"}, Routes: []Route{{}}, HTTP2: true, Dial: up.dial}
	if change != nil {
		change(&u)
	}
	proxy := newProxy(t, u)
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	servers := []*http.Server{{Handler: proxy, Protocols: &both}, {Handler: upstream, Protocols: &both}}
	var wg sync.WaitGroup
	wg.Go(func() { _ = servers[0].Serve(in) })
	wg.Go(func() { _ = servers[1].Serve(up) })
	t.Cleanup(func() {
		for _, s := range servers {
			_ = s.Close()
		}
		proxy.table.Load().targets["up"].base.CloseIdleConnections()
		wg.Wait()
	})
	return in
}

func TestManyUnreadResponsesOverHTTP2AreCutSoon(t *testing.T) {
	defer func(n int) { unread.most = n }(unread.most)
	unread.most = 8
	for _, c := range []struct {
		stalled int
		within  time.Duration // in which cut responses end
		cut     int
	}{{8, 10 * time.Second, 0}, {24, 10 * time.Second, 24 - 8}, {24, 2 * time.Minute, 24}} {
		t.Run(fmt.Sprint(c.stalled, " for ", c.within), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ended := make(chan struct{}, c.stalled)
				in := over2(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/calm" {
						_, _ = io.WriteString(w, "calm")
						return
					}
					for {
						if _, err := w.Write(make([]byte, 10_000)); err != nil {
							ended <- struct{}{}
							return
						}
					}
				}, nil)
				for range c.stalled {
					conn, err := in.dial(t.Context(), "", "")
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = conn.Close() })
					_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
				}
				time.Sleep(c.within)
				synctest.Wait()
				if n := len(ended); n < c.cut || c.cut == 0 && n > 0 {
					t.Errorf("%d of %d stalled responses were cut within %v, want %d", n, c.stalled, c.within, c.cut)
				}
				conn, err := in.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				begun := time.Now()
				_, _ = io.WriteString(conn, "GET /calm HTTP/1.1\r\nHost: localhost\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || resp.StatusCode != http.StatusOK || time.Since(begun) > time.Second {
					t.Errorf("another caller: %v, %v after %v", resp, err, time.Since(begun))
				}
			})
		})
	}
}

func TestStalledCallOfGRPCEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		idle time.Duration
		want time.Duration // when the upstream's call ends; 0 if it continues
		talk bool          // the caller sends a message every 40 minutes
	}{
		{"by default", 0, time.Hour, false},
		{"while the caller sends", 0, 0, true},
		{"with an idle time", time.Minute, time.Minute, false},
		{"off", -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				lost := make(chan time.Time, 1)
				in := over2(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/grpc")
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
					lost <- time.Now()
				}, func(u *Upstream) { u.GRPC, u.Policy.Timeouts.Idle = true, c.idle })
				client := &http.Transport{DialContext: in.dial, Protocols: new(http.Protocols)}
				client.Protocols.SetUnencryptedHTTP2(true)
				defer client.CloseIdleConnections()
				body, write := io.Pipe()
				over := make(chan struct{})
				defer func() { close(over); _ = write.Close() }()
				go func() {
					for c.talk {
						if _, err := write.Write(make([]byte, 5)); err != nil {
							return
						}
						select {
						case <-over:
							return
						case <-time.After(40 * time.Minute):
						}
					}
				}()
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/a.B/C", body)
				r.Header.Set("Content-Type", "application/grpc")
				begun := time.Now()
				resp, err := client.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				select {
				case at := <-lost:
					if took := at.Sub(begun); c.want == 0 || took < c.want || took > c.want+10*time.Second {
						t.Errorf("the call ended after %v, want %v", took, c.want)
					}
				case <-time.After(10 * time.Hour):
					if c.want > 0 {
						t.Error("the call goes on")
					}
				}
			})
		})
	}
}
