package websocket

import (
	"strconv"
	"sync"
	"sync/atomic"

	ws "github.com/coder/websocket"
)

// The directions of messages.
const (
	ToUpstream = "to_upstream"
	ToCaller   = "to_caller"
)

// Counts counts an upstream's connections and their messages.
type Counts struct {
	Upstream string
	Open     atomic.Int64 // connections
	Most     atomic.Int64 // the limit of open connections; 0 means no limit

	mu     sync.Mutex
	routes map[string]*row
	closed map[string]*atomic.Int64 // by code
}

// A row counts messages of a route.
type row struct {
	passed, refused atomic.Int64 // to the upstream
	back            atomic.Int64 // to callers
}

// codes are common close codes. They are counted from the start, at 0.
var codes = [...]ws.StatusCode{ws.StatusNormalClosure, goingAway, cut, badText, policy, tooBig, restart, tryAgainLater}

func newCounts(upstream string) *Counts {
	c := &Counts{Upstream: upstream, routes: make(map[string]*row), closed: make(map[string]*atomic.Int64)}
	for _, code := range codes {
		c.closed[strconv.Itoa(int(code))] = new(atomic.Int64)
	}
	return c
}

// begins starts the counts of a configuration's routes at 0.
func (c *Counts) begins(config Config) {
	c.Most.Store(int64(config.Most))
	c.row(Connect)
	c.row(Default)
	for _, name := range config.Routes {
		c.row(name)
	}
}

// row returns the counts of a route. Only declared routes have one.
func (c *Counts) row(route string) *row {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.routes[route]
	if r == nil {
		r = new(row)
		c.routes[route] = r
	}
	return r
}

// ended counts a closed connection. Application codes are counted together, because there are 2,000 of them.
func (c *Counts) ended(code int) {
	word := strconv.Itoa(code)
	switch {
	case code >= 4000:
		word = "4xxx"
	case code >= 3000:
		word = "3xxx"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed[word] == nil {
		c.closed[word] = new(atomic.Int64)
	}
	c.closed[word].Add(1)
}

// Messages yields the number of messages per route.
func (c *Counts) Messages(yield func(route, direction, decision string, n int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for route, r := range c.routes {
		yield(route, ToUpstream, "allowed", r.passed.Load())
		yield(route, ToUpstream, "refused", r.refused.Load())
		if route == Default {
			yield(route, ToCaller, "allowed", r.back.Load())
		}
	}
}

// Closed yields the number of closed connections per code, which the caller received or sent.
func (c *Counts) Closed(yield func(code string, n int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for code, n := range c.closed {
		yield(code, n.Load())
	}
}
