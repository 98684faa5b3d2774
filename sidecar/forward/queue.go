package forward

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// A connQueue is the listener of decrypted connections. net/http speaks HTTP/2 only on a plain *tls.Conn, so the queue
// maps each connection to its destination. It is safe for concurrent use.
type connQueue struct {
	addr  net.Addr
	ready chan net.Conn
	ended chan struct{}
	once  sync.Once
	to    sync.Map // destinations by net.Conn
}

func newConnQueue(addr net.Addr) *connQueue {
	return &connQueue{addr: addr, ready: make(chan net.Conn), ended: make(chan struct{})}
}

// put passes a connection to the server. It reports false if the server has ended.
func (q *connQueue) put(c *tls.Conn, d destination) bool {
	q.to.Store(net.Conn(c), d)
	select {
	case q.ready <- c:
		return true
	case <-q.ended:
		q.to.Delete(net.Conn(c))
		return false
	}
}

func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-q.ready:
		return c, nil
	case <-q.ended:
		return nil, net.ErrClosed
	}
}

func (q *connQueue) Close() error {
	q.once.Do(func() { close(q.ended) })
	return nil
}

func (q *connQueue) Addr() net.Addr { return q.addr }

type destinationKey struct{}

func (q *connQueue) context(ctx context.Context, c net.Conn) context.Context {
	if d, ok := q.to.Load(c); ok {
		return context.WithValue(ctx, destinationKey{}, d)
	}
	return ctx
}

func (q *connQueue) state(c net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		q.to.Delete(c)
	}
}
