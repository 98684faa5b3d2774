// Package memnet is an in-memory network for HTTP tests in a bubble of testing/synctest. A system connection would stop virtual
// time there.
//
//	n := memnet.New()
//	defer n.Close()
//	n.Serve("api.test", handler)
//	client := &http.Client{Transport: n.Transport()}
package memnet

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// A Network has hosts without ports. It is safe for concurrent use.
type Network struct {
	mu      sync.Mutex
	hosts   map[string]chan net.Conn
	conns   map[net.Conn]struct{}
	closing []func()
	running sync.WaitGroup
	closed  chan struct{}
}

// New returns a network without hosts.
func New() *Network {
	return &Network{hosts: make(map[string]chan net.Conn), conns: make(map[net.Conn]struct{}), closed: make(chan struct{})}
}

// Serve adds a host that serves HTTP, and returns its URL.
func (n *Network) Serve(host string, h http.Handler) (url string) {
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	l := n.Listen(host)
	n.mu.Lock()
	n.closing = append(n.closing, func() { _ = s.Close() })
	n.mu.Unlock()
	n.running.Go(func() { _ = s.Serve(l) })
	return "http://" + host
}

// Listen adds a host. It ignores the port in the address.
func (n *Network) Listen(address string) net.Listener {
	host := hostOf(address)
	n.mu.Lock()
	defer n.mu.Unlock()
	ch := make(chan net.Conn)
	n.hosts[host] = ch
	return &listener{n, host, ch, make(chan struct{}), sync.Once{}}
}

// Hear is Listen with an error result, for callers that need one.
func (n *Network) Hear(address string) (net.Listener, error) { return n.Listen(address), nil }

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Transport returns a transport that connects only to hosts of this network.
func (n *Network) Transport() *http.Transport {
	t := &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 1000}
	n.mu.Lock()
	n.closing = append(n.closing, t.CloseIdleConnections)
	n.mu.Unlock()
	return t
}

// Dial connects to a host.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	ch := n.hosts[hostOf(address)]
	n.mu.Unlock()
	if ch == nil {
		return nil, fmt.Errorf("dial %s: there is no such host in this network", address)
	}
	near, far := net.Pipe()
	select {
	case ch <- n.keep(far):
		return n.keep(near), nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close closes all connections and waits until the servers have ended.
func (n *Network) Close() {
	n.mu.Lock()
	close(n.closed)
	closing := n.closing
	open := make([]net.Conn, 0, len(n.conns))
	for c := range n.conns {
		open = append(open, c)
	}
	n.mu.Unlock()
	for _, f := range closing {
		f()
	}
	for _, c := range open {
		_ = c.Close()
	}
	n.running.Wait()
}

func (n *Network) keep(c net.Conn) net.Conn {
	k := &conn{c, n}
	n.mu.Lock()
	n.conns[k] = struct{}{}
	n.mu.Unlock()
	return k
}

// A conn removes itself from the network when it is closed.
type conn struct {
	net.Conn
	n *Network
}

// Servers read the address of a request's client.
var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

func (c *conn) LocalAddr() net.Addr  { return here }
func (c *conn) RemoteAddr() net.Addr { return here }

func (c *conn) Close() error {
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}

type listener struct {
	n    *Network
	host string
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
	case <-l.n.closed:
	}
	return nil, net.ErrClosed
}

// Close removes the host from the network.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.n.mu.Lock()
		delete(l.n.hosts, l.host)
		l.n.mu.Unlock()
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.host) }

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
