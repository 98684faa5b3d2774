// Package connlimit bounds connections and requests in flight of a listener, in total and per caller.
package connlimit

import (
	"cmp"
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Bounds are the maximum numbers.
type Bounds struct {
	Connections       int // in total
	CallerConnections int // per address
	Streams           int // per HTTP/2 connection
	Requests          int // in flight, in total
	CallerRequests    int // in flight, per caller
}

// Reasons of refusals.
const (
	Connections       = "connections"
	CallerConnections = "caller_connections"
	Streams           = "streams"
	Requests          = "requests"
	CallerRequests    = "caller_requests"
)

// A Limiter counts connections and requests of one listener and enforces its bounds. It is safe for concurrent use.
type Limiter struct {
	turned func(why string)

	mu       sync.Mutex
	bounds   Bounds
	idle     list.List // idle connections, as *conn, the longest idle first
	conns    map[string]*home
	total    int
	requests int
	streams  int
	callers  map[string]int // requests in flight by caller
	named    bool           // callers have names, so the bound of an address applies only to idle connections
	held     map[string]int // connections that serve a caller, by name
	low      int            // waiting requests of low priority
	lowOf    map[string]int // the same by caller
}

// home has the connections of one address.
type home struct {
	n    int
	idle list.List // like Limiter.idle
}

// New returns an empty limiter. It calls turned, which may be nil, with the reason of each refusal.
func New(b Bounds, turned func(why string)) *Limiter {
	if turned == nil {
		turned = func(string) {}
	}
	return &Limiter{turned: turned, bounds: b, conns: make(map[string]*home), callers: make(map[string]int), held: make(map[string]int), lowOf: make(map[string]int)}
}

// Set changes the bounds. Existing connections and requests stay.
func (c *Limiter) Set(b Bounds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bounds = b
}

// SetNamed specifies whether every request must identify its caller. If so, callers behind one address have separate bounds
// instead of a common one.
func (c *Limiter) SetNamed(named bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named = named
}

// Bounds returns the current bounds.
func (c *Limiter) Bounds() Bounds {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounds
}

// Use returns the current numbers. For bounds per caller it returns the highest number of any caller.
func (c *Limiter) Use() (b Bounds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = Bounds{Connections: c.total, Streams: c.streams, Requests: c.requests}
	for _, h := range c.conns {
		b.CallerConnections = max(b.CallerConnections, h.n)
	}
	for _, n := range c.callers {
		b.CallerRequests = max(b.CallerRequests, n)
	}
	return b
}

// Enter admits a request of a caller, or returns the bound that it would exceed. A request that is not an HTTP/2 stream uses a
// connection, and a named caller can use as many of these as one address. Admitted requests must call Leave.
func (c *Limiter) Enter(caller string, named, stream bool) (why string) {
	if why = c.enter(caller, named, stream); why != "" {
		c.turned(why)
	}
	return why
}

func (c *Limiter) enter(caller string, named, stream bool) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.requests >= c.bounds.Requests:
		return Requests
	case c.callers[caller] >= c.bounds.CallerRequests:
		return CallerRequests
	case named && !stream && c.held[caller] >= c.bounds.CallerConnections:
		return CallerConnections
	}
	if named && !stream {
		c.held[caller]++
	}
	c.requests++
	c.callers[caller]++
	if stream {
		c.streams++
	}
	return ""
}

// Leave ends a request.
func (c *Limiter) Leave(caller string, named, stream bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if named && !stream {
		if c.held[caller]--; c.held[caller] == 0 {
			delete(c.held, caller)
		}
	}
	c.requests--
	if c.callers[caller]--; c.callers[caller] == 0 {
		delete(c.callers, caller)
	}
	if stream {
		c.streams--
	}
}

// EnterLow counts a request of low priority that starts to wait, and reports whether it may. Together they can use at most half
// of the connections and requests, and half of the caller's, so that calls of higher priority find the other half. A request
// that may wait must call LeaveLow.
func (c *Limiter) EnterLow(caller string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.bounds
	if c.low >= half(b.Connections, b.Requests) || c.lowOf[caller] >= half(b.CallerConnections, b.CallerRequests) {
		return false
	}
	c.low++
	c.lowOf[caller]++
	return true
}

// LeaveLow ends the wait of a request of low priority.
func (c *Limiter) LeaveLow(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.low--
	if c.lowOf[caller]--; c.lowOf[caller] == 0 {
		delete(c.lowOf, caller)
	}
}

// half returns half of the smaller number, and at least 1.
func half(a, b int) int { return max(1, min(a, b)/2) }

// A Room bounds one caller's waiting requests of low priority. It is safe for concurrent use.
type Room struct {
	Limiter *Limiter
	Caller  string
}

// Enter reports whether another request may wait.
func (r *Room) Enter() bool { return r.Limiter.EnterLow(r.Caller) }

// Leave ends the wait of an entered request.
func (r *Room) Leave() { r.Limiter.LeaveLow(r.Caller) }

type roomKey struct{}

// IsRoom reports whether key is the context key of a Room, for contexts that create the value on demand.
func IsRoom(key any) bool { return key == roomKey{} }

// RoomOf returns the Room in a request's context, or nil if there is no bound.
func RoomOf(ctx context.Context) *Room {
	r, _ := ctx.Value(roomKey{}).(*Room)
	return r
}

// most is the maximum default of any bound, if the process may open enough files.
const most = 8192

// WithDefaults fills in bounds that are 0, for a process that may open this many files. One caller can use half of each total.
func (b Bounds) WithDefaults(files uint64) Bounds {
	if b.Connections == 0 {
		b.Connections = int(max(1, min(most, files/4))) // each call also has a connection to the upstream
	}
	b.CallerConnections = cmp.Or(b.CallerConnections, max(1, b.Connections/2))
	b.Streams = cmp.Or(b.Streams, 250)
	b.Requests = cmp.Or(b.Requests, most)
	b.CallerRequests = cmp.Or(b.CallerRequests, max(1, b.Requests/2))
	return b
}

// Handler bounds the requests of a handler by client address.
func (c *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer Serving(r)()
		caller, stream := Address(r.RemoteAddr), r.ProtoMajor > 1
		if why := c.Enter(caller, false, stream); why != "" {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests are in flight: "+Field(why), http.StatusServiceUnavailable)
			return
		}
		defer c.Leave(caller, false, stream)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), roomKey{}, &Room{c, caller})))
	})
}

// Field returns the configuration field of a bound.
func Field(why string) string { return "bounds." + why }

// Address returns the address of a connection without its port.
func Address(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
