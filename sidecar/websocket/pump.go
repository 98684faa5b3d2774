package websocket

import (
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/outcome"
)

// A buffer holds one message while it is passed on. An idle connection has none.
type buffer struct{ b []byte }

const (
	usual = 4 << 10  // initial size in bytes
	kept  = 64 << 10 // the largest buffer that is reused
)

var pool = sync.Pool{New: func() any { return &buffer{make([]byte, usual)} }}

// read reads a message of a side. The flow owns the buffer until passed.
func (f *flow) read(from *side) (typ ws.MessageType, msg []byte, err error) {
	typ, r, err := from.conn.Reader(forever)
	if err != nil {
		return 0, nil, err
	}
	f.buf = pool.Get().(*buffer)
	n := 0
	for {
		if n == len(f.buf.b) && !f.grow() {
			f.release()
			return 0, nil, buffers.ErrFull
		}
		m, err := r.Read(f.buf.b[n:])
		n += m
		if err == io.EOF && from.conn.ended.over.Load() {
			err = io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			f.holds.Store(true)
			from.heard.Store(true)
			return typ, f.buf.b[:n], nil
		}
		if err != nil {
			f.release()
			return 0, nil, err
		}
	}
}

// passed releases the buffer.
func (f *flow) passed(from *side) {
	f.release()
	from.heard.Store(true) // the pong of a ping could not be read meanwhile
	f.holds.Store(false)
}

func (f *flow) release() {
	if len(f.buf.b) <= kept {
		pool.Put(f.buf)
	}
	buffers.Bodies.Give(f.took)
	f.buf, f.took = nil, 0
}

// grow doubles a full buffer. Memory beyond the usual size counts toward weir's memory budget for bodies. It returns
// false if the budget is used up.
func (f *flow) grow() bool {
	most := 2 * len(f.buf.b)
	if most > kept {
		buffers.Bodies.Give(f.took)
		if f.took = int64(most); !buffers.Bodies.Spare(f.took) {
			f.took = 0
			return false
		}
	}
	more := make([]byte, most)
	copy(more, f.buf.b)
	f.buf.b = more
	return true
}

// write writes a message to a side, which must accept it within a time.
func (f *flow) write(to *side, typ ws.MessageType, msg []byte, most time.Duration) error {
	f.slow.Store(to)
	f.guard.Reset(most)
	err := to.conn.Write(forever, typ, msg)
	f.guard.Stop()
	f.slow.Store(nil)
	return err
}

// toUpstream passes on the caller's messages, each after it was allowed.
func (s *Session) toUpstream() {
	for {
		typ, msg, err := s.up.read(s.caller)
		if err != nil {
			s.end(s.left(err))
			return
		}
		ok := s.pass(typ, msg)
		s.up.passed(s.caller)
		if !ok {
			return
		}
	}
}

// pass passes on or refuses a message of the caller. It reports whether the session continues.
func (s *Session) pass(typ ws.MessageType, msg []byte) bool {
	if typ == ws.MessageText && !utf8.Valid(msg) {
		s.end(ending{code: badText, why: "the message is not UTF-8"})
		return false
	}
	route, twice := s.route(msg)
	if twice {
		return s.refuse(s.routes[Default], ambiguous(s.Config.Field))
	}
	row := s.routes[route]
	s.call.Operation = route
	s.call.Cost[size] = int64(len(msg))
	if err := s.Upstream.Admit(s.ctx, &s.call, &s.permit, s.Config.Wait); err != nil {
		return s.refuse(row, err)
	}
	err := s.up.write(s.upstream, typ, msg, s.Config.Write)
	if err != nil {
		s.permit.Report(outcome.Outcome{Class: outcome.Failed, Code: "gone"})
		s.end(s.gone(err))
		return false
	}
	s.permit.Report(okay)
	row.passed.Add(1)
	s.up.Messages++
	s.up.Bytes += int64(len(msg))
	return true
}

// size is the unit of message sizes.
const size = "bytes"

// okay is the outcome of a message that was passed on.
var okay = outcome.Outcome{Class: outcome.OK}

// route returns the route of a message. twice reports that the message names its route more than once.
func (s *Session) route(msg []byte) (name string, twice bool) {
	if len(s.Config.Field) == 0 {
		return Default, false
	}
	value, twice := find(msg, s.Config.Field)
	if twice {
		return Default, true
	}
	for _, name := range s.Config.Routes {
		if string(value) == name && name != Connect {
			return name, false
		}
	}
	return Default, false
}

// toCaller passes on the upstream's messages.
func (s *Session) toCaller() {
	back := s.routes[Default]
	for {
		typ, msg, err := s.down.read(s.upstream)
		if err != nil {
			s.end(s.gone(err))
			return
		}
		err = s.down.write(s.caller, typ, msg, s.Config.Write)
		n := len(msg)
		s.down.passed(s.upstream)
		if err != nil {
			s.end(s.left(err))
			return
		}
		back.back.Add(1)
		s.down.Messages++
		s.down.Bytes += int64(n)
	}
}

// full is the ending of a session with a message for which the memory budget has no room.
var full = ending{code: tryAgainLater, why: "weir's memory for bodies is full"}

// left returns the ending of a session whose caller closed the connection, or can no longer be read.
func (s *Session) left(err error) ending {
	var closed ws.CloseError
	switch {
	case errors.As(err, &closed):
		return ending{code: closed.Code, upstream: closed.Code, why: closed.Reason}
	case errors.Is(err, ws.ErrMessageTooBig):
		return ending{code: tooBig, why: "a message of the caller is larger than max_message"}
	case errors.Is(err, buffers.ErrFull):
		return full
	}
	return ending{code: cut, why: "the caller disconnected"}
}

// gone returns the ending of a session whose upstream did.
func (s *Session) gone(err error) ending {
	var closed ws.CloseError
	switch {
	case errors.As(err, &closed):
		return ending{code: closed.Code, upstream: closed.Code, why: closed.Reason}
	case errors.Is(err, ws.ErrMessageTooBig):
		return ending{code: tooBig, upstream: tooBig, why: "a message of the upstream is larger than max_message"}
	case errors.Is(err, buffers.ErrFull):
		return full
	}
	return ending{code: tryAgainLater, upstream: cut, why: "the upstream disconnected"}
}
