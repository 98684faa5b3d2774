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

// Codes with which connections are closed (RFC 6455 7.4.1 and those registered since).
const (
	goingAway     = ws.StatusGoingAway // 1001: the other side, or the route, is gone
	badText       = ws.StatusInvalidFramePayloadData
	policy        = ws.StatusPolicyViolation // 1008: refused over and over, or too slow
	tooBig        = ws.StatusMessageTooBig
	restart       = ws.StatusServiceRestart // 1012
	tryAgainLater = ws.StatusTryAgainLater  // 1013: the upstream is away, or its breaker open
	cut           = ws.StatusCode(1006)     // never sent: there was no close frame
)

// TryAgainLater is the code of a connection that ended as its upstream did not go on, or weir could not.
const TryAgainLater = int(tryAgainLater)

// An ending is why a connection ends: what its caller is told, and what the upstream is.
type ending struct {
	code     ws.StatusCode // for the caller; cut if there is nobody to tell
	mute     bool          // it cannot be told
	upstream ws.StatusCode // 0 means 1001, cut that there is nobody to tell
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

	// Of the goroutine that reads what the caller sends.
	up      flow
	call    weir.Call
	permit  weir.Permit
	routes  map[string]*row
	serial  int64 // of messages that were refused
	refused refusals

	// Of the goroutine that reads what the upstream sends.
	down flow

	mu     sync.Mutex
	over   bool // the session ends
	ending ending
	runs   bool        // there are two sides that can be told
	due    *ending     // of a session that is to end as soon as it runs
	close  *time.Timer // ends it soon; nil if nothing does
}

// A flow is one direction: what it has passed on, and what bounds its writes.
type flow struct {
	Traffic
	guard *time.Timer
	slow  atomic.Pointer[side] // to whom is written
	holds atomic.Bool          // it has a message, and reads nothing meanwhile
	buf   *buffer
	took  int64 // of what weir may hold in memory
}

// Connection names the connection.
func (s *Session) Connection() string { return s.id }

// Leave ends a session that did not come to be.
func (s *Session) Leave() { s.hub.leave(s) }

// Run passes messages on until the connection is closed on both sides, and returns what became of it. ctx ends it at once.
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

// ready has the session end from now on when it is told to. It returns how it is to end at once, nil if it is not: while the
// upstream was dialled there was nobody to tell.
func (s *Session) ready() *ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = true
	return s.due
}

// known are the counts of each route that a message can name, and of the default one.
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

// end ends the session: both sides are told why, and what is under way is cut off. Only the first reason counts.
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
	s.stop() // last, as whoever waits for flows would miss those two
}

// tooSlow ends the session as a peer does not take what it is sent.
func (s *Session) tooSlow(who *side) {
	switch who {
	case s.caller: // what is before a close frame is not read
		s.end(ending{code: policy, mute: true, why: "the caller does not read its messages"})
	case s.upstream:
		s.end(ending{code: tryAgainLater, upstream: cut, why: "the upstream does not read its messages"})
	}
}

// A side is the connection to the caller, or to the upstream.
type side struct {
	conn  *Conn
	heard atomic.Bool // something came since somebody looked
}

func newSide(c *Conn, most int64) *side {
	c.SetReadLimit(most)
	return &side{conn: c}
}

// close ends the connection with a code, and waits for the answer for some seconds.
func (d *side) close(code ws.StatusCode, why string) {
	if code == cut {
		d.cut()
		return
	}
	late := time.AfterFunc(goodbye, d.conn.ended.cut) // the library reads a message that is under way to its end, however long that takes
	defer late.Stop()
	_ = d.conn.Close(code, strings.ToValidUTF8(why[:min(len(why), longestReason)], ""))
}

// goodbye is how long it may take that a close frame is written, and answered: each has 5s in the library.
const goodbye = 10 * time.Second

// longestReason is as much as a close frame holds beside its code.
const longestReason = 123

// cut ends the connection without a word.
func (d *side) cut() { _ = d.conn.CloseNow() }
