package serve

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// countedConn counts the bytes that are written to a connection.
type countedConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// A caller that sends many bodies over one connection while its calls wait does not fill weir's memory.
func TestConnectionHoldsFewUnreadRequestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", limits: {all: {rate: 1/min, burst: 1}}, max_wait: 1h, timeouts: {call: 1h}}}\n")()
		var sent atomic.Int64
		tr := n.Transport()
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := n.Dial(ctx, network, address)
			return countedConn{c, &sent}, err
		}
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
		tr.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 250}
		client := &http.Client{Transport: tr}
		callAs(t, client, "", "GET", "/up/", "", nil)
		ctx, cancel := context.WithCancel(t.Context())
		const bodies, size = 8, 1 << 20
		done := make(chan struct{}, bodies)
		for range bodies {
			r, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/up/", bytes.NewReader(make([]byte, size)))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if resp, err := client.Do(r); err == nil {
					_ = resp.Body.Close()
				}
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		if got := sent.Load(); got > 128<<10 {
			t.Errorf("weir took %d bytes of %d bodies that it does not read yet", got, bodies)
		}
		cancel()
		for range bodies {
			<-done
		}
	})
}
