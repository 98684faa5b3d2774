package httpx_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A mute connection can fall silent, as when a machine or a gateway is gone: written bytes are lost, no bytes arrive, and there
// is no error.
type mute struct {
	net.Conn
	gone   atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (c *mute) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.gone.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *mute) Write(b []byte) (int, error) {
	if c.gone.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *mute) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// With the default timeouts, an HTTP/2 connection that has fallen silent is detected and replaced, although calls still use it.
func TestASilentConnectionOfHTTP2IsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		s := &httptest.Server{Listener: n.Listen("api.test"), EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		})}}
		s.StartTLS()
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())

		var conns []*mute
		base := httpx.NewBase(weir.Policy{}.WithDefaults().Timeouts, 0)
		base.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"}
		base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := n.Dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			m := &mute{Conn: c, closed: make(chan struct{})}
			conns = append(conns, m)
			return m, nil
		}
		defer base.CloseIdleConnections()
		u, err := weir.New("api", weir.Policy{}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		client := &http.Client{Transport: httpx.NewTransport(u, base)}
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // how long callers wait
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.test/", nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if string(text) != "HTTP/2.0" {
				t.Errorf("the test wants HTTP/2, not %q", text)
			}
			return err
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		conns[0].gone.Store(true)
		begin := time.Now()
		for get() != nil {
			if time.Since(begin) > time.Minute {
				t.Fatal("a minute later calls still go out over a connection that has fallen silent")
			}
			time.Sleep(time.Second)
		}
		t.Logf("all is well after %v, over connection %d", time.Since(begin), len(conns))
	})
}
