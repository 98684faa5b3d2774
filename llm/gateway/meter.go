package gateway

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/reading"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
)

// A meter is the body of a model's answer. It reads the answer while it is passed on. It passes on only complete frames,
// so that an error can follow any of them.
type meter struct {
	x      *exchange
	resp   *http.Response
	ctx    context.Context // of the attempt
	src    io.ReadCloser
	reader *reading.Reader
	count  tokens.Count // tokens that the model has written
	stop   stopper

	progress *progress // of the request; nil if none
	row      price.Row // prices of the model
	priced   bool      // row is set

	buffer  *[bufferSize]byte // borrowed until Close
	late    chan chunk        // result of a read that is still running
	ready   []byte            // bytes that may be passed on
	err     error             // follows ready; nil if more may come
	end     outcome.Outcome
	good    bool        // the attempt was judged successful
	first   *time.Timer // ends the wait for the first content
	begun   bool        // the stream has had content
	idle    *time.Timer // limits the wait for the next chunk; nil before the first wait
	silence time.Duration
	total   *time.Timer

	copy   []byte // bytes passed on, for the cache
	keep   bool
	taken  int64 // memory taken from the process's budget, for copy and ready
	closed atomic.Bool
}

var _ httpx.Meter = (*meter)(nil)

const (
	bufferSize = 32 << 10
	mostHeld   = 256 << 10 // maximum size of the held start of an answer
)

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

type chunk struct {
	n   int
	err error
}

func newMeter(x *exchange, resp *http.Response, b *progress) *meter {
	m := &meter{x: x, resp: resp, ctx: resp.Request.Context(), stop: x.stop, progress: b, buffer: pool.Get().(*[bufferSize]byte)}
	m.row, m.priced = x.d.o.Prices.Find(x.request.Model)
	m.patient()
	decode(resp)
	m.src = resp.Body
	m.reader = reading.New(x.route, x.route.Stream, resp.StatusCode, resp.Header)
	if x.request.AddedUsage {
		m.reader.WithoutUsage()
	}
	m.reader.Written(m.count.Add)
	m.keep = x.keeps()
	if m.keep || b != nil && b.keep {
		m.keep = true
		m.reader.Collect()
	}
	if m.reader.Streamed() { // the length may change
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
		if m.priced {
			resp.Trailer = http.Header{CostHeader: nil}
		}
	}
	return m
}

// patient turns off the idle timeout of the body below, because the meter has its own timeouts.
func (m *meter) patient() {
	if b, ok := m.resp.Body.(interface{ SetIdle(time.Duration) }); ok {
		b.SetIdle(-1)
	}
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.take(m.next())
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// next reads the next chunk within the time set by silent.
func (m *meter) next() chunk {
	if m.silence > 0 {
		if m.idle == nil {
			m.idle = m.after(m.silence, errIdle)
		} else {
			m.idle.Reset(m.silence)
		}
		defer m.idle.Stop()
	}
	if m.late != nil {
		c := <-m.late
		m.late = nil
		return c
	}
	n, err := m.src.Read(m.buffer[:])
	return chunk{n, err}
}

func (m *meter) take(c chunk) {
	if c.n > 0 {
		m.pass(m.reader.Feed(m.buffer[:c.n]))
	}
	if !m.begun && m.reader.Streamed() && m.reader.Committed() {
		if m.begun = true; m.first != nil {
			m.first.Stop()
		}
		m.silent(m.x.d.o.Idle)
	}
	switch {
	case c.err == io.EOF:
		if m.reader.Streamed() {
			m.ready = slices.Clone(m.ready) // ready may share the reader's memory
		}
		m.pass(m.reader.End())
		if m.finish(); m.good {
			m.remember()
		}
	case c.err != nil:
		m.fail(c.err)
	}
}

// pass appends to the bytes that may be passed on.
func (m *meter) pass(whole []byte) {
	if len(whole) == 0 {
		return
	}
	if m.keep {
		if m.copy = append(m.copy, whole...); len(m.copy) > mostKept || !m.room(0) {
			m.keep, m.copy = false, nil
		}
	}
	if len(m.ready) == 0 {
		m.ready = whole
		return
	}
	m.ready = append(m.ready[:len(m.ready):len(m.ready)], whole...)
}

// room reserves memory of the process's budget for the held bytes and n more. Up to roomStep bytes need no reservation.
func (m *meter) room(n int) bool {
	more := int64(len(m.copy)+len(m.ready)+n) - m.taken
	if more <= roomStep {
		return true
	}
	more = (more + roomStep - 1) / roomStep * roomStep
	if more > buffers.Small || !buffers.Bodies.Spare(more) {
		return false
	}
	m.taken += more
	return true
}

// leaveRoom releases the memory in steps of roomStep, because it was reserved as small claims.
func (m *meter) leaveRoom() {
	for ; m.taken > 0; m.taken -= roomStep {
		buffers.Bodies.Give(roomStep)
	}
}

// roomStep is the step in bytes in which memory is reserved.
const roomStep = 64 << 10

// mostKept is the maximum size in bytes of a cached answer.
const mostKept = 1 << 20

// Close implements io.Closer. The caller may have disconnected before the end.
func (m *meter) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	for _, t := range []*time.Timer{m.first, m.idle, m.total} {
		if t != nil {
			t.Stop()
		}
	}
	if m.err == nil {
		m.err, m.end = http.ErrBodyReadAfterClose, outcome.Outcome{Class: outcome.Canceled}
	}
	err := m.src.Close()
	m.leaveRoom()
	if m.ready = nil; m.late == nil { // no read uses the buffer
		pool.Put(m.buffer)
		m.buffer = nil
	}
	m.stop(context.Canceled)
	if m.good {
		m.account()
	}
	return err
}

// Outcome implements httpx.Meter.
func (m *meter) Outcome() outcome.Outcome { return m.end }
