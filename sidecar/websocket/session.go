package websocket

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
)

// Codes of close frames (RFC 6455 7.4.1 and later registrations).
const (
	goingAway     = ws.StatusGoingAway // 1001: the other side, or the route, is gone
	badText       = ws.StatusInvalidFramePayloadData
	policy        = ws.StatusPolicyViolation // 1008: refused too often, or too slow
	tooBig        = ws.StatusMessageTooBig
	restart       = ws.StatusServiceRestart // 1012
	tryAgainLater = ws.StatusTryAgainLater  // 1013: the upstream is gone, or its breaker is open
	cut           = ws.StatusCode(1006)     // never sent: there was no close frame
)

// TryAgainLater is the code of a connection that ended because its upstream or weir could not continue.
const TryAgainLater = int(tryAgainLater)

// An ending is the end of a connection: the code for each side, and the reason.
type ending struct {
	code     ws.StatusCode // for the caller; cut if it receives no close frame
	mute     bool          // it cannot receive a close frame
	upstream ws.StatusCode // 0 means 1001, cut means no close frame
	why      string        // at most 123 bytes
}

var restarting = ending{code: restart, why: "weir is restarting"}

// A Session is one connection, from its caller's request on.
type Session struct {
	hub *Hub
	Caller
	id     string
	began  time.Time
	counts *Counts

	caller, upstream *side
	ctx              context.Context // ends with the session
	stop             context.CancelFunc
	flows            sync.WaitGroup

	// Used by the goroutine that reads the caller's messages.
	up      flow
	call    weir.Call
	permit  weir.Permit
	routes  map[string]*row
	serial  int64 // of refused messages
	refused refusals

	// Used by the goroutine that reads the upstream's messages.
	down flow

	mu     sync.Mutex
	over   bool // the session ends
	ending ending
	runs   bool        // both sides exist
	due    *ending     // the ending of a session that must end as soon as it runs
	close  *time.Timer // ends it soon; nil if no end is scheduled
}

// A flow is one direction: its traffic, and the timer of its writes.
type flow struct {
	Traffic
	guard *time.Timer
	slow  atomic.Pointer[side] // the side that a write waits for
	holds atomic.Bool          // it has a message, and reads nothing meanwhile
	buf   *buffer
	took  int64 // from weir's memory budget for bodies
}

// Connection returns the ID of the connection.
func (s *Session) Connection() string { return s.id }

// Leave ends a session that did not begin to run.
func (s *Session) Leave() { s.hub.leave(s) }

// Run passes on messages until the connection is closed on both sides, and returns its summary. The end of ctx ends
// the connection immediately.
func (s *Session) Run(ctx context.Context, caller, upstream *Conn) *Summary {
	defer s.hub.leave(s)
	s.caller, s.upstream = newSide(caller, s.Config.MaxMessage), newSide(upstream, s.Config.MaxMessage)
	s.ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	s.call = weir.Call{Keys: s.Keys, Part: true, ID: s.requestID(), Note: s.Note, Cost: make(map[string]int64, 2)}
	s.routes = s.known()
	s.counts.row(Connect).passed.Add(1)
	for _, f := range []*flow{&s.up, &s.down} {
		f.guard = time.AfterFunc(never, func() { s.tooSlow(f.slow.Load()) })
		f.guard.Stop()
	}
	s.flows.Go(s.keep)
	if due := s.ready(); due != nil {
		s.end(*due)
	}
	if over, ok := s.hub.draining(); ok {
		s.closeSoon(over, restarting)
	}
	s.flows.Go(s.toCaller)
	s.toUpstream()
	s.flows.Wait()
	s.up.guard.Stop()
	s.down.guard.Stop()
	s.counts.ended(int(s.ending.code))
	sum := s.summary(upstream.Subprotocol() != "")
	if s.hub.Closed != nil {
		s.hub.Closed(sum)
	}
	return sum
}

// ready marks the session as running, so that end takes effect. It returns the ending that was requested while the
// upstream was dialed, nil if there was none.
func (s *Session) ready() *ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = true
	return s.due
}

// known returns the counts of each route that a message can name, and of the default one.
func (s *Session) known() map[string]*row {
	all := map[string]*row{Default: s.counts.row(Default)}
	for _, name := range s.Config.Routes {
		if name != Connect {
			all[name] = s.counts.row(name)
		}
	}
	return all
}

func (s *Session) summary(subprotocol bool) *Summary {
	return &Summary{
		Upstream: s.Name, ID: s.ID, Connection: s.id, Subprotocol: subprotocol, Lasted: time.Since(s.began),
		ToUpstream: s.up.Traffic, ToCaller: s.down.Traffic, Refused: s.serial, Code: int(s.ending.code), Why: s.ending.why,
	}
}

// end ends the session: both sides receive the reason, and messages in progress are cut off. Only the first ending
// counts.
func (s *Session) end(e ending) {
	s.mu.Lock()
	if !s.runs && s.due == nil {
		s.due = &e
	}
	if !s.runs || s.over {
		s.mu.Unlock()
		return
	}
	if e.upstream == 0 {
		e.upstream = goingAway
	}
	s.over, s.ending = true, e
	if s.close != nil {
		s.close.Stop()
	}
	s.mu.Unlock()
	if e.mute {
		e.code = cut
	}
	s.flows.Go(func() { s.caller.close(e.code, e.why) })
	s.flows.Go(func() { s.upstream.close(e.upstream, e.why) })
	s.stop() // last, because a goroutine that waits for flows would otherwise miss those two
}

// tooSlow ends the session because a peer does not accept messages.
func (s *Session) tooSlow(who *side) {
	switch who {
	case s.caller: // data before a close frame is not read
		s.end(ending{code: policy, mute: true, why: "the caller does not read its messages"})
	case s.upstream:
		s.end(ending{code: tryAgainLater, upstream: cut, why: "the upstream does not read its messages"})
	}
}

// A side is the connection to the caller or to the upstream.
type side struct {
	conn  *Conn
	heard atomic.Bool // something was received since the last check
}

func newSide(c *Conn, most int64) *side {
	c.SetReadLimit(most)
	return &side{conn: c}
}

// close closes the connection with a code, and waits some seconds for the response.
func (d *side) close(code ws.StatusCode, why string) {
	if code == cut {
		d.cut()
		return
	}
	late := time.AfterFunc(goodbye, d.conn.ended.cut) // otherwise the library would read a message in progress to its end, however long that takes
	defer late.Stop()
	_ = d.conn.Close(code, strings.ToValidUTF8(why[:min(len(why), longestReason)], ""))
}

// goodbye is the longest time for a close frame and its response: each has 5s in the library.
const goodbye = 10 * time.Second

// longestReason is the longest reason that a close frame can contain, in bytes.
const longestReason = 123

// cut closes the connection without a close frame.
func (d *side) cut() { _ = d.conn.CloseNow() }
