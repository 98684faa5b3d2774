// Package front is what stands before net/http on a listener: it shakes hands, and sees in
// heads of HTTP/1 what net/http does not tell of.
package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Handshake bounds how long a client may take to agree on encryption.
const Handshake = 10 * time.Second

// A Listener gives connections on which requests can be told whose framing is doubtful. With
// TLS the handshake is done already when Accept returns; those that fail are told of.
type Listener struct {
	net.Listener
	tls    *tls.Config
	failed func(net.Addr, error)
	ready  chan net.Conn
	end    chan struct{}
	close  func() error
	once   sync.Once
}

// Listen stands before a listener. config is nil without TLS; failed is called for handshakes
// that came to nothing, and may be nil.
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

// greet shakes hands with those who come.
func (l *Listener) greet() {
	for pause := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 0
			go l.shake(c)
		case errors.As(err, &passing) && passing.Temporary(): // as net/http has it: too many files, perhaps
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
		default:
			_ = l.Close()
			return
		}
	}
}

// shake shakes hands. What speaks HTTP/2 is net/http's to serve as it is.
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

// Close ends the listener.
func (l *Listener) Close() error { return l.close() }
