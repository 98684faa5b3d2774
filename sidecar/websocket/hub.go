// Package websocket serves connections that have changed their protocol to WebSocket (RFC 6455): messages are passed on
// between a caller and an upstream, each under the limits of the upstream.
//
// A connection is dialled as a call like any other. Then each direction has a goroutine, which reads a message, asks for it, and
// writes it, and holds no other: who does not read holds up whoever writes to it, for a bounded time. What is refused is
// answered with a message, and the connection stays.
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

// A Hub has all connections that are open. The zero Hub has none, and nobody hears of them. It is safe for concurrent use.
type Hub struct {
	// Closed hears of the end of each connection; nil means unheard. It is set before the first one.
	Closed func(*Summary)

	// Refused hears of each connection for which there was no place; nil means unheard. It is set before the first one, and must
	// not wait.
	Refused func(*Caller, *weir.Refusal)

	mu     sync.Mutex
	counts map[string]*Counts
	open   map[*Session]struct{}
	held   map[place]int // connections of a value of a scope
	drain  *time.Duration
}

// A Summary is what became of a connection.
type Summary struct {
	Upstream, ID, Connection string // ID is that of its first request
	Subprotocol              bool   // one was agreed on; which may be a secret
	Lasted                   time.Duration
	ToUpstream, ToCaller     Traffic
	Refused                  int64 // messages
	Code                     int   // with which the caller's side was closed, or which the caller has said
	Why                      string
}

// Traffic is what was passed on in one direction.
type Traffic struct{ Messages, Bytes int64 }

// A place is what connections are counted by.
type place struct{ upstream, scope, key string }

// A Caller is whose connection it is, and where it leads.
type Caller struct {
	Upstream *weir.Upstream
	Config   Config
	ID       string            // of its request
	Keys     map[string]string // the values of scopes, which become the connection's
	Name     string            // of the upstream
	Stays    func() bool       // asked after a reload: whether there is still a route for it
	Note     any               // weir.Call.Note of its messages; it may be set until the session runs
}

// Begin makes a connection's session, which has its place among others until it is ended, or says why there is none. It must
// be ended, by Run or Leave.
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

// begin gives a session its place.
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

// countsOf are those of an upstream. The lock is held.
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

// Serves has connections counted from the start of all upstreams that can have some, by their names: what is there with its first event
// shows no increase.
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

// soon is when a caller may try again for whom there was no place: nobody knows when one leaves.
const soon = time.Second

// enter takes a place of each scope that has a bound, or of none. The lock is held.
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

// places are those that the connection takes, and how many there are of each.
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

// leave gives back what enter took.
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

// Counts yields those of each upstream that can have connections, or had one.
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

// Forget drops the counts of an upstream that is no more.
func (h *Hub) Forget(upstream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.counts, upstream)
}

// all are the sessions there are now.
func (h *Hub) all() []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Session, 0, len(h.open))
	for s := range h.open {
		all = append(all, s)
	}
	return all
}

// moving is over how long connections are closed that a reload has taken their route from.
const moving = 5 * time.Second

// Moved has those connections closed whose route is gone, as the configuration is another.
func (h *Hub) Moved() {
	for _, s := range h.all() {
		if !s.Stays() {
			s.closeSoon(moving, ending{code: goingAway, why: "the route was removed"})
		}
	}
}

// Drain has all connections closed, each at an instant of its own within so long, that their callers do not all come back at
// once. Those that come later are closed likewise.
func (h *Hub) Drain(over time.Duration) {
	h.mu.Lock()
	h.drain = &over
	h.mu.Unlock()
	for _, s := range h.all() {
		s.closeSoon(over, restarting)
	}
}

// draining is over how long connections are closed, if they are.
func (h *Hub) draining() (over time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drain == nil {
		return 0, false
	}
	return *h.drain, true
}

// closeSoon has the session end at an instant of its own within so long.
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

// newID names a connection. No name begins with a dash: a command would take it for a flag.
func newID() string {
	for {
		var b [12]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id
		}
	}
}

// forever is a context for reads, which a timer need not end: closing the connection does.
var forever = context.Background()

// never is longer than any connection lasts.
const never = time.Duration(math.MaxInt64)
