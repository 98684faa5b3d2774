package websocket

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A site is a network in memory with a hub in front of an upstream.
type site struct {
	*memnet.Network
	hub    Hub
	weir   *weir.Upstream
	config Config
	client *http.Client
	dials  http.RoundTripper // to upstreams
	accept func(*ws.Conn)
	deaf   bool // the upstream does not respond to pings

	mu    sync.Mutex
	ended []*Summary
	stays bool
}

// newSite is for a bubble. accept serves each connection of the upstream.
func newSite(t testing.TB, p weir.Policy, c Config, accept func(*ws.Conn)) *site {
	t.Helper()
	p.Undeclared = true
	u, err := weir.New("up", p, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Network: memnet.New(), weir: u, config: c, accept: accept, stays: true}
	s.hub.Closed = func(x *Summary) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, x)
	}
	transport := s.Transport()
	s.client, s.dials = &http.Client{Transport: transport}, transport
	s.Serve("up.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.upstream(w, r) }))
	s.Serve("weir.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }))
	return s
}

func (s *site) upstream(w http.ResponseWriter, r *http.Request) {
	c, err := ws.Accept(w, r, &ws.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return !s.deaf }})
	if err != nil {
		return
	}
	c.SetReadLimit(-1)
	defer c.CloseNow()
	s.accept(c)
}

// serve does what the proxy does.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	if f := Problem(w, r); f != nil {
		f.Write(w)
		return
	}
	x, refusal := s.hub.Begin(Caller{
		Upstream: s.weir, Config: s.config, ID: "call-1", Keys: map[string]string{"user": r.Header.Get("X-User")}, Name: "up",
		Stays: func() bool { return s.stays },
	})
	if refusal != nil {
		refuse.Of(refusal, time.Now()).Write(w)
		return
	}
	defer x.Leave()
	out, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://up.test/", nil)
	up, no, err := Dial(out, s.dials.RoundTrip)
	if err != nil || up == nil {
		if no != nil {
			no.Body.Close()
		}
		http.Error(w, "no", http.StatusBadGateway)
		return
	}
	caller, err := Accept(w, r, up.Subprotocol())
	if err != nil {
		_ = up.CloseNow()
		return
	}
	x.Run(r.Context(), caller, up)
}

// dial opens a connection of a caller.
func (s *site) dial(t testing.TB, user string) *ws.Conn {
	t.Helper()
	c, _, err := ws.Dial(context.Background(), "ws://weir.test/", &ws.DialOptions{HTTPClient: s.client, HTTPHeader: http.Header{"X-User": {user}}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	return c
}

// last waits until the most recent connection has ended, and returns its summary.
func (s *site) last(t testing.TB, n int) *Summary {
	t.Helper()
	for range 100 * 3600 {
		s.mu.Lock()
		if len(s.ended) >= n {
			defer s.mu.Unlock()
			return s.ended[n-1]
		}
		s.mu.Unlock()
		<-time.After(10 * time.Millisecond) // of the bubble's time
	}
	t.Fatal("the connection does not end")
	return nil
}

// echo sends every message back.
func echo(c *ws.Conn) {
	for {
		typ, msg, err := c.Read(context.Background())
		if err != nil || c.Write(context.Background(), typ, msg) != nil {
			return
		}
	}
}

// hour returns a context that ends after an hour of the bubble's time.
func hour(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// ended returns the code with which a connection ends on this side, after any other messages.
func ended(c *ws.Conn) (ws.StatusCode, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour) // of the bubble's time
	defer cancel()
	for {
		_, r, err := c.Reader(ctx)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			code := ws.CloseStatus(err)
			var closed ws.CloseError
			if code >= 0 {
				closed = closeError(err)
			}
			return code, closed.Reason
		}
	}
}

func write(t testing.TB, c *ws.Conn, text string) {
	t.Helper()
	if err := c.Write(context.Background(), ws.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, c *ws.Conn) string {
	t.Helper()
	_, msg, err := c.Read(hour(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(msg)
}

// An ear reads all messages, and so responds to pings.
type ear struct {
	said chan string
	code chan ws.StatusCode
}

func listen(c *ws.Conn) *ear {
	e := &ear{make(chan string, 100), make(chan ws.StatusCode, 1)}
	go func() {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
			_, msg, err := c.Read(ctx)
			cancel()
			if err != nil {
				e.code <- ws.CloseStatus(err)
				return
			}
			e.said <- string(msg)
		}
	}()
	return e
}
