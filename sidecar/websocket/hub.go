// Package websocket serves connections that have switched to WebSocket (RFC 6455). It passes messages between a
// caller and an upstream, under the limits of the upstream.
//
// A connection is opened by a call. Then one goroutine per direction reads a message, asks the limits, and writes it,
// and holds no other message. A peer that does not read delays only the goroutine that writes to it, for a bounded
// time. A refused message is answered with a message, and the connection stays open.
package websocket

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"math"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A Hub contains all open connections. The zero Hub has none and no callbacks. It is safe for concurrent use.
type Hub struct {
	// Closed is called at the end of each connection; nil means no callback. Set it before the first connection.
	Closed func(*Summary)

	// Refused is called for each connection that exceeds a connection limit; nil means no callback. Set it before the
	// first connection. It must not block.
	Refused func(*Caller, *weir.Refusal)

	mu     sync.Mutex
	counts map[string]*Counts
	open   map[*Session]struct{}
	held   map[place]int // number of connections per value of a scope
	drain  *time.Duration
}

// A Summary describes a connection that has ended.
type Summary struct {
	Upstream, ID, Connection string // ID is the ID of its first request
	Subprotocol              bool   // a subprotocol was agreed on; its name may be a secret
	Lasted                   time.Duration
	ToUpstream, ToCaller     Traffic
	Refused                  int64 // messages
	Code                     int   // the code sent to the caller, or received from it
	Why                      string
}

// Traffic counts the messages passed in one direction.
type Traffic struct{ Messages, Bytes int64 }

// A place identifies a count of connections.
type place struct{ upstream, scope, key string }

// A Caller describes a connection's caller and its upstream.
type Caller struct {
	Upstream *weir.Upstream
	Config   Config
	ID       string            // of its request
	Keys     map[string]string // the values of scopes for the connection
	Name     string            // of the upstream
	Stays    func() bool       // called after a reload: reports whether a route for it still exists
	Note     any               // weir.Call.Note of its messages; it may be set until the session runs
}

// Begin returns a connection's session, which counts until it is ended by Run or Leave. If there are too many
// connections, it returns a refusal.
func (h *Hub) Begin(c Caller) (*Session, *weir.Refusal) {
	c.Config = c.Config.WithDefaults()
	s := &Session{hub: h, Caller: c, id: newID(), began: time.Now()}
	s.Keys = maps.Clone(s.Keys)
	if s.Keys == nil {
		s.Keys = make(map[string]string, 1)
	}
	s.Keys[Connection] = s.id
	if refusal := h.begin(s); refusal != nil {
		if h.Refused != nil {
			h.Refused(&s.Caller, refusal)
		}
		return nil, refusal
	}
	return s, nil
}

// begin adds a session.
func (h *Hub) begin(s *Session) *weir.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open, h.held = make(map[*Session]struct{}), make(map[place]int)
	}
	s.counts = h.countsOf(s.Name)
	if refusal := h.enter(s); refusal != nil {
		s.counts.row(Connect).refused.Add(1)
		return refusal
	}
	s.counts.Open.Add(1)
	h.open[s] = struct{}{}
	return nil
}

// countsOf returns the counts of an upstream. The lock must be held.
func (h *Hub) countsOf(upstream string) *Counts {
	c := h.counts[upstream]
	if c == nil {
		c = newCounts(upstream)
		if h.counts == nil {
			h.counts = make(map[string]*Counts)
		}
		h.counts[upstream] = c
	}
	return c
}

// Serves starts the counts of all upstreams that can have connections, by their names. If a series first appeared
// with its first event, its rate would show no increase.
func (h *Hub) Serves(all map[string]Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.counts {
		c.Most.Store(0)
	}
	for name, c := range all {
		h.countsOf(name).begins(c)
	}
}

// soon is the RetryAfter of a refused connection, because it is unknown when another one ends.
const soon = time.Second

// enter counts a connection under each scope that has a limit, or under none. The lock must be held.
func (h *Hub) enter(s *Session) *weir.Refusal {
	for at, most := range s.places() {
		if h.held[at] >= most {
			return &weir.Refusal{Upstream: s.Name, Operation: Connect, Reason: weir.ConcurrencyLimited, Rule: limit.Limit{Scope: at.scope},
				Key: at.key, InFlight: h.held[at], Bound: most, RetryAfter: soon}
		}
	}
	for at := range s.places() {
		h.held[at]++
	}
	return nil
}

// places yields the counts to which the connection belongs, with their limits.
func (s *Session) places() func(yield func(place, int) bool) {
	return func(yield func(place, int) bool) {
		if most := s.Config.Most; most > 0 && !yield(place{s.Name, "", ""}, most) {
			return
		}
		for scope, most := range s.Config.MostBy {
			if !yield(place{s.Name, scope, s.Keys[scope]}, most) {
				return
			}
		}
	}
}

// leave reverses enter.
func (h *Hub) leave(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, here := h.open[s]; !here {
		return
	}
	delete(h.open, s)
	s.counts.Open.Add(-1)
	for at := range s.places() {
		if h.held[at]--; h.held[at] == 0 {
			delete(h.held, at)
		}
	}
}

// Counts yields the counts of each upstream that can have connections, or had one.
func (h *Hub) Counts(yield func(*Counts) bool) {
	h.mu.Lock()
	all := make([]*Counts, 0, len(h.counts))
	for _, c := range h.counts {
		all = append(all, c)
	}
	h.mu.Unlock()
	for _, c := range all {
		if !yield(c) {
			return
		}
	}
}

// Forget drops the counts of a removed upstream.
func (h *Hub) Forget(upstream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.counts, upstream)
}

// all returns the present sessions.
func (h *Hub) all() []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Session, 0, len(h.open))
	for s := range h.open {
		all = append(all, s)
	}
	return all
}

// moving is the time over which connections are closed after a reload removed their route.
const moving = 5 * time.Second

// Moved closes the connections whose route is gone, after the configuration has changed.
func (h *Hub) Moved() {
	for _, s := range h.all() {
		if !s.Stays() {
			s.closeSoon(moving, ending{code: goingAway, why: "the route was removed"})
		}
	}
}

// Drain closes all connections, each at a random instant within the time, so that their callers do not all reconnect
// together. Later connections are closed likewise.
func (h *Hub) Drain(over time.Duration) {
	h.mu.Lock()
	h.drain = &over
	h.mu.Unlock()
	for _, s := range h.all() {
		s.closeSoon(over, restarting)
	}
}

// draining returns the time over which connections are closed, if they are.
func (h *Hub) draining() (over time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drain == nil {
		return 0, false
	}
	return *h.drain, true
}

// closeSoon ends the session at a random instant within the time.
func (s *Session) closeSoon(over time.Duration, e ending) {
	wait := time.Duration(0)
	if over > 0 {
		wait = mathrand.N(over)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.close == nil && !s.over {
		s.close = time.AfterFunc(wait, func() { s.end(e) })
	}
}

// newID returns the ID of a connection. It does not begin with a dash, which a command would take for a flag.
func newID() string {
	for {
		var b [12]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id
		}
	}
}

// forever is the context of reads. They need no timer, because they end when the connection is closed.
var forever = context.Background()

// never is longer than any connection lasts.
const never = time.Duration(math.MaxInt64)
