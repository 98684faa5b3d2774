package llmsim

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Server is a listening provider, for HTTP/1.1 and HTTP/2 without TLS (prior knowledge). It is safe for concurrent use.
type Server struct {
	URL string // such as http://127.0.0.1:1234

	p    *Provider
	addr string

	mu     sync.Mutex
	http   *http.Server // nil while it is down
	served chan struct{}
	closed bool
	back   *time.Timer // ends DownFor
	calls  calls
}

// Start listens at a free loopback port.
func (p *Provider) Start() (*Server, error) { return p.Listen("127.0.0.1:0") }

// Listen listens at a TCP address.
func (p *Provider) Listen(addr string) (*Server, error) {
	s := &Server{p: p, addr: addr}
	if err := s.Up(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = append(p.servers, s)
	return s, nil
}

// Up listens again at the same port.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up()
}

func (s *Server) up() error {
	if s.http != nil {
		return nil
	}
	if s.closed {
		return errors.New("llmsim: the server is closed")
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("llmsim: %w", err)
	}
	if s.URL == "" {
		s.addr = l.Addr().String()
		s.URL = "http://" + s.addr
	}
	s.http, s.served = &http.Server{Handler: s.calls.count(s.p), Protocols: protocols(), ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func(h *http.Server, served chan struct{}) {
		defer close(served)
		_ = h.Serve(l) // returns only after Close
	}(s.http, s.served)
	return nil
}

func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return &p
}

// Down closes the listener and all connections. New connections are refused.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down()
}

func (s *Server) down() {
	if s.back != nil {
		s.back.Stop()
		s.back = nil
	}
	if s.http == nil {
		return
	}
	_ = s.http.Close() // remaining connections are already closed
	<-s.served
	s.http = nil
}

// DownFor calls Down, and Up after d.
func (s *Server) DownFor(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down()
	if !s.closed {
		s.back = time.AfterFunc(d, s.again)
	}
}

// again listens again, and retries if another process has the port.
func (s *Server) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil || s.closed {
		return // it was canceled meanwhile
	}
	s.back = nil
	if s.up() != nil {
		s.back = time.AfterFunc(10*time.Millisecond, s.again)
	}
}

// restore ends DownFor early.
func (s *Server) restore() {
	s.mu.Lock()
	if s.back != nil {
		s.back.Stop()
	}
	s.mu.Unlock()
	s.again()
}

// Close ends the server. It aborts pending calls and waits for their ends.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.down()
	s.mu.Unlock()
	s.calls.wait()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.servers = slices.DeleteFunc(s.p.servers, func(x *Server) bool { return x == s })
}

// calls are the pending calls.
type calls struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; nil without waiters
}

func (c *calls) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.add(+1)
		defer c.add(-1)
		h.ServeHTTP(w, r)
	})
}

func (c *calls) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

func (c *calls) wait() {
	c.mu.Lock()
	if c.n > 0 && c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
