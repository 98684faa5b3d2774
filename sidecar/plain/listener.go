// Package plain serves plain HTTP/1.1 requests in the goroutine of their connection, with one read and one write
// each. Everything else is left to net/http: from the first other request on a connection, it gets all bytes of that
// connection.
//
// A request is plain if its first line is in a given list, its head and body have arrived completely and fit into a
// buffer, and each header field has an unambiguous meaning (parse.go). Requests that could be read in two ways are
// not served here.
//
// For each request, net/http starts a goroutine that watches whether the client disconnects, and sets up to seven
// deadlines. This package watches the client only if the handler waits for that, and sets a deadline only if the last
// one is too old.
package plain

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Listener serves plain requests itself, and returns all other connections from Accept.
type Listener struct {
	net.Listener
	lines  []string
	server *http.Server
	ready  chan net.Conn // connections for Accept
	end    chan struct{} // closed by Close
	close  func() error  // executed once
	begin  sync.Once
	served sync.WaitGroup // connections that are served here

	mu     sync.Mutex
	conns  map[*conn]struct{}
	ended  bool
	failed error // why no connection can be accepted any more; nil after Close
}

// New returns a listener in front of l for a server. Its handler, timeouts, context and error log also apply to plain
// requests. The handler must not flush or hijack responses to the given first lines ("POST /v1/acquire"), and must
// not change their request headers. The listener starts to accept with the first call of Accept.
func New(l net.Listener, server *http.Server, lines ...string) *Listener {
	p := &Listener{Listener: l, lines: lines, server: server, ready: make(chan net.Conn), end: make(chan struct{}), conns: make(map[*conn]struct{})}
	p.close = sync.OnceValue(p.shut)
	return p
}

// Accept waits for a connection that net/http must serve.
func (l *Listener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.accept() })
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.end:
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, cmp.Or(l.failed, net.ErrClosed)
	}
}

// accept serves new connections.
func (l *Listener) accept() {
	for pause := time.Duration(0); ; {
		n, err := l.Listener.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 0
			if c := l.enter(n); c != nil {
				go c.serve()
			}
		case errors.As(err, &passing) && passing.Temporary(): // like net/http: the process may have too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-l.end:
				return
			}
		default:
			l.mu.Lock()
			if !l.ended {
				l.failed = err
			}
			l.mu.Unlock()
			_ = l.Close()
			return
		}
	}
}

// enter adds a connection. It returns nil if the listener is closed.
func (l *Listener) enter(n net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = n.Close()
		return nil
	}
	c := newConn(l, n)
	l.conns[c] = struct{}{}
	l.served.Add(1)
	return c
}

// leave removes a connection.
func (l *Listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	l.served.Done()
}

// stopping reports whether each connection must end with its present response.
func (l *Listener) stopping() bool {
	select {
	case <-l.end:
		return true
	default:
		return false
	}
}

// Close closes the listener, and connections that wait for a request. Requests in progress continue: see Wait.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) shut() error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	close(l.end)
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.endIfIdle()
	}
	return err
}

// Wait waits, after Close, until the requests in progress have their responses. When ctx ends, it closes the
// remaining connections, cancels their requests, and returns the cause of ctx's end.
func (l *Listener) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		l.served.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) == 0 {
		return nil
	}
	for c := range l.conns {
		_ = c.net.Close()
		c.gone()
	}
	return context.Cause(ctx)
}

// logf logs a problem to the server's error log, like net/http.
func (l *Listener) logf(format string, args ...any) {
	if l.server.ErrorLog != nil {
		l.server.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
