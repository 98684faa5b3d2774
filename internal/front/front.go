// Package front wraps a listener for net/http. It performs TLS handshakes, and detects properties of HTTP/1 heads that net/http
// does not report.
package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Handshake is the timeout of a TLS handshake.
const Handshake = 10 * time.Second

// A Listener returns connections on which Doubtful can detect requests with ambiguous framing. With TLS, Accept returns after
// the handshake. Failed handshakes are reported.
type Listener struct {
	net.Listener
	tls    *tls.Config
	failed func(net.Addr, error)
	ready  chan net.Conn
	end    chan struct{}
	close  func() error
	once   sync.Once
}

// Listen wraps a listener. config is nil without TLS. failed receives failed handshakes and may be nil.
func Listen(l net.Listener, config *tls.Config, failed func(net.Addr, error)) *Listener {
	if failed == nil {
		failed = func(net.Addr, error) {}
	}
	f := &Listener{Listener: l, tls: config, failed: failed, ready: make(chan net.Conn), end: make(chan struct{})}
	f.close = sync.OnceValue(func() error { close(f.end); return l.Close() })
	return f
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	if l.tls == nil {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		return watch(c, nil), nil
	}
	l.once.Do(func() { go l.greet() })
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

// greet accepts connections and starts their handshakes.
func (l *Listener) greet() {
	for pause := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 0
			go l.shake(c)
		case errors.As(err, &passing) && passing.Temporary(): // like net/http, for example with too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
		default:
			_ = l.Close()
			return
		}
	}
}

// shake performs a handshake. net/http serves HTTP/2 connections directly.
func (l *Listener) shake(c net.Conn) {
	secure := tls.Server(c, l.tls)
	ctx, cancel := context.WithTimeout(context.Background(), Handshake)
	err := secure.HandshakeContext(ctx)
	cancel()
	if err != nil {
		l.failed(c.RemoteAddr(), err)
		_ = c.Close()
		return
	}
	var ready net.Conn = secure
	if secure.ConnectionState().NegotiatedProtocol != "h2" {
		ready = watch(secure, secure)
	}
	select {
	case l.ready <- ready:
	case <-l.end:
		_ = c.Close()
	}
}

// Close closes the listener.
func (l *Listener) Close() error { return l.close() }
