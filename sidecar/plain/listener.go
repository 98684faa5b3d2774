// Package plain serves requests of HTTP/1.1 that are plain in the goroutine of their connection, with one read and
// one write for each. All others are net/http's: the first one on a connection that is anything else is left to it,
// byte for byte, and so is the rest of that connection.
//
// A request is plain if its first line is one of those that were named, its head and body have come whole and fit
// into a buffer, and each line of its head is a field that means here what it means to anybody (parse.go). Nothing
// is guessed: what could be read in two ways is not read here.
//
// net/http starts a goroutine for each request that watches whether the caller leaves, and sets up to seven
// deadlines. Here the caller is watched when somebody waits for that, and a deadline is set when the one before
// is old.
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

// A Listener answers plain requests itself, and gives to who accepts the connections on which something else was said.
type Listener struct {
	net.Listener
	lines  []string
	server *http.Server
	ready  chan net.Conn // what it accepts
	end    chan struct{} // closed by Close
	close  func() error  // once
	begin  sync.Once
	served sync.WaitGroup // connections that are served here

	mu     sync.Mutex
	conns  map[*conn]struct{}
	ended  bool
	failed error // why nobody can come any more; nil after Close
}

// New makes a listener in front of l for a server, whose handler, timeouts, context and error log are those of plain
// requests, too. The handler answers those whose first lines are named ("POST /v1/acquire") whole: it does not flush
// or hijack them, and does not write to their headers. It starts to accept with the first Accept.
func New(l net.Listener, server *http.Server, lines ...string) *Listener {
	p := &Listener{Listener: l, lines: lines, server: server, ready: make(chan net.Conn), end: make(chan struct{}), conns: make(map[*conn]struct{})}
	p.close = sync.OnceValue(p.shut)
	return p
}

// Accept waits for a connection that is net/http's to serve.
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

// accept serves those who come.
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
		case errors.As(err, &passing) && passing.Temporary(): // as net/http has it: too many files, perhaps
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

// enter counts a connection in, nil if the listener is closed.
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

// leave counts a connection out.
func (l *Listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	l.served.Done()
}

// stopping reports whether each connection ends with its present answer.
func (l *Listener) stopping() bool {
	select {
	case <-l.end:
		return true
	default:
		return false
	}
}

// Close ends the listener, and connections that wait for a request. What is being served goes on: see Wait.
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

// Wait waits, after Close, until what is being served is answered. When ctx ends the connections that are left are
// closed, and their callers taken to have left: then the error says why ctx ended.
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

// logf tells of what went wrong, where net/http does.
func (l *Listener) logf(format string, args ...any) {
	if l.server.ErrorLog != nil {
		l.server.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
