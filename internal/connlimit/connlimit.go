// Package connlimit bounds what the callers of a listener may have at once, together and each:
// connections, and requests in flight.
package connlimit

import (
	"cmp"
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Bounds are how much there may be at once.
type Bounds struct {
	Connections       int // of all
	CallerConnections int // from one address
	Streams           int // of one connection, of HTTP/2
	Requests          int // in flight, of all
	CallerRequests    int // in flight, of one caller
}

// Why there was no room.
const (
	Connections       = "connections"
	CallerConnections = "caller_connections"
	Streams           = "streams"
	Requests          = "requests"
	CallerRequests    = "caller_requests"
)

// A Limiter counts what the callers of one listener have at once, and lets in no more than its
// bounds. It is safe for concurrent use.
type Limiter struct {
	turned func(why string)

	mu       sync.Mutex
	bounds   Bounds
	idle     list.List // of *conn that serve no request, the one that has for longest first
	conns    map[string]*home
	total    int
	requests int
	streams  int
	callers  map[string]int // requests in flight
	named    bool           // callers have names: an address bounds only what serves no request
	held     map[string]int // connections that serve a caller with a name
	low      int            // requests of low priority that wait
	lowOf    map[string]int // these by caller
}

// home is the connections of one address.
type home struct {
	n    int
	idle list.List // as Limiter.idle
}

// New makes a limiter with nobody there. turned is called with why somebody was turned away; it may be nil.
func New(b Bounds, turned func(why string)) *Limiter {
	if turned == nil {
		turned = func(string) {}
	}
	return &Limiter{turned: turned, bounds: b, conns: make(map[string]*home), callers: make(map[string]int), held: make(map[string]int), lowOf: make(map[string]int)}
}

// Set changes the bounds. Those who are there stay.
func (c *Limiter) Set(b Bounds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bounds = b
}

// SetNamed says whether every request has to show who sends it. Callers behind one address have one bound each
// then, and not one together.
func (c *Limiter) SetNamed(named bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named = named
}

// Bounds are those in force.
func (c *Limiter) Bounds() Bounds {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounds
}

// Use is how much there is at once. What is one caller's is the most that any of them has.
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

// Enter lets a request of a caller in, or says which bound it would pass. A request that is no stream of HTTP/2 holds a
// connection, and a caller with a name may hold as many as may come from one address. One that was let in must Leave.
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

// Leave takes note that a request is over.
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

// EnterLow counts in a request of low priority that begins to wait, and reports whether it may. All of them have at most half
// of the connections and requests that there may be, and those of one caller half of the caller's: whoever calls at a higher
// priority finds the other half. One that may wait must LeaveLow.
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

// LeaveLow counts out a request of low priority that no longer waits.
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

// A Room is where requests of low priority wait that one caller has sent. It is safe for concurrent use.
type Room struct {
	Limiter *Limiter
	Caller  string
}

// Enter reports whether one more may wait.
func (r *Room) Enter() bool { return r.Limiter.EnterLow(r.Caller) }

// Leave ends the wait of one that has entered.
func (r *Room) Leave() { r.Limiter.LeaveLow(r.Caller) }

type roomKey struct{}

// IsRoom reports whether the key of a context value is that of a Room, for contexts that make the value when it is asked for.
func IsRoom(key any) bool { return key == roomKey{} }

// RoomOf returns where the request with the context waits at low priority; nil if nothing bounds that.
func RoomOf(ctx context.Context) *Room {
	r, _ := ctx.Value(roomKey{}).(*Room)
	return r
}

// most is how many there may be of anything, where there are files enough.
const most = 8192

// WithDefaults are the bounds where those that are 0 are filled in, for a process that may open so many
// files. One caller may have half of what all may have.
func (b Bounds) WithDefaults(files uint64) Bounds {
	if b.Connections == 0 {
		b.Connections = int(max(1, min(most, files/4))) // each call has a connection of its own to the upstream, too
	}
	b.CallerConnections = cmp.Or(b.CallerConnections, max(1, b.Connections/2))
	b.Streams = cmp.Or(b.Streams, 250)
	b.Requests = cmp.Or(b.Requests, most)
	b.CallerRequests = cmp.Or(b.CallerRequests, max(1, b.Requests/2))
	return b
}

// Handler bounds the requests of a handler, by the address that they come from.
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

// Field is the field of the configuration that says how many there may be.
func Field(why string) string { return "bounds." + why }

// Address is where a connection comes from, without its port.
func Address(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
