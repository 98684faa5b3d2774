package llmdialect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/classify"
	"github.com/seed1158cd35/weir/llm/reading"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
)

// Why an answer ends before its time.
var (
	errFirstContent error = silence("no content came in time")
	errIdle         error = silence("the stream fell silent")
	errTotal        error = silence("the answer took too long")
	errCut                = errors.New("the upstream ended the stream before its end")
)

// silence is a timeout of weir's own.
type silence string

func (s silence) Error() string { return string(s) }
func (s silence) Timeout() bool { return true }

// A meter is the body of a model's answer. It reads what the answer says as it passes
// by: whole frames only, so that an error can be written behind any of them.
type meter struct {
	x      *exchange
	resp   *http.Response
	ctx    context.Context // of the attempt
	src    io.ReadCloser
	reader *reading.Reader
	stop   stopper

	buffer *[bufferSize]byte // lent until Close
	late   chan chunk        // a read that was begun and not waited for
	ready  []byte            // what may be passed on
	err    error             // what follows it; nil if there may be more
	end    outcome.Outcome
	good   bool        // the attempt was taken for a success
	first  *time.Timer // until there is content
	idle   *time.Timer
	total  *time.Timer

	copy   []byte // for the cache, of what was passed on
	keep   bool
	closed atomic.Bool
}

var _ weir.Meter = (*meter)(nil)

const (
	bufferSize = 32 << 10
	mostHeld   = 256 << 10 // of the beginning of an answer
)

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A chunk is what a read brought.
type chunk struct {
	n   int
	err error
}

func newMeter(x *exchange, resp *http.Response) *meter {
	m := &meter{x: x, resp: resp, ctx: resp.Request.Context(), src: resp.Body, stop: x.stop, buffer: pool.Get().(*[bufferSize]byte)}
	m.reader = reading.New(x.route, x.route.Stream, resp.StatusCode, resp.Header)
	if x.request.AddedUsage {
		m.reader.WithoutUsage()
	}
	m.keep = x.keeps()
	if b := billOf(m.ctx); m.keep || b != nil && b.keep {
		m.keep = true
		m.reader.Collect()
	}
	if m.reader.Streamed() { // it may get longer, or shorter
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
		if _, priced := x.d.o.Prices.Find(x.request.Model); priced {
			resp.Trailer = http.Header{CostHeader: nil}
		}
	}
	return m
}

// Read is io.Reader's.
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

// next waits for more of the answer, no longer than the stream may be silent.
func (m *meter) next() chunk {
	if m.idle != nil {
		m.idle.Reset(m.x.d.o.Idle)
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

// take reads what has come.
func (m *meter) take(c chunk) {
	if c.n > 0 {
		m.pass(m.reader.Feed(m.buffer[:c.n]))
	}
	if m.first != nil && m.reader.Committed() {
		m.first.Stop()
		m.first = nil
	}
	switch {
	case c.err == io.EOF:
		if m.reader.Streamed() {
			m.ready = slices.Clone(m.ready) // its memory is the reader's
		}
		m.pass(m.reader.End())
		m.finish()
	case c.err != nil:
		m.fail(c.err)
	}
}

// pass adds to what may be passed on.
func (m *meter) pass(whole []byte) {
	if len(whole) == 0 {
		return
	}
	if m.keep {
		if m.copy = append(m.copy, whole...); len(m.copy) > mostKept {
			m.keep, m.copy = false, nil
		}
	}
	if len(m.ready) == 0 {
		m.ready = whole
		return
	}
	m.ready = append(m.ready[:len(m.ready):len(m.ready)], whole...)
}

// mostKept is the largest answer that is kept.
const mostKept = 1 << 20

// finish judges an answer whose body has come to its end.
func (m *meter) finish() {
	r := m.reader
	m.err, m.end = io.EOF, outcome.Outcome{Class: outcome.OK}
	switch problem := r.Failed(); {
	case problem != nil:
		m.end = problem.Outcome
	case r.Streamed() && r.Finish() != "":
	case m.empty():
		m.end = outcome.Outcome{Class: outcome.Failed, Code: "not an answer"}
	case r.Blind() || r.Complete():
	case !r.Streamed():
		m.end = outcome.Outcome{Class: outcome.Failed, Code: "not an answer"}
	default:
		m.cut(errCut)
	}
}

// empty reports whether a body that is JSON is no answer of a model: there is nothing in it
// that one has.
func (m *meter) empty() bool { return m.x.route.Generates && m.reader.Hollow() }

// fail judges one whose body has failed.
func (m *meter) fail(err error) {
	if cause := context.Cause(m.ctx); cause != nil {
		err = cause
	}
	if r := m.resp.Request; callerLeft(r, err) {
		m.err, m.end = err, outcome.Outcome{Class: outcome.Canceled}
		return
	}
	m.cut(err)
}

// callerLeft reports whether an answer ended because nobody wants it any more.
func callerLeft(r *http.Request, err error) bool {
	_, own := err.(silence)
	return !own && errors.Is(err, context.Canceled)
}

// cut ends a stream before its time. A caller who has been given something is told so in
// the words of the family, and then the connection is closed: never a fake end.
func (m *meter) cut(err error) {
	m.err, m.end = err, classify.Rules{}.Error(context.Background(), err)
	if m.end.Class == outcome.OK || m.end.Class == outcome.Rejected || m.end.Class == outcome.Unknown || err == errCut {
		m.end = outcome.Outcome{Class: outcome.Failed, Code: "cut"}
	}
	m.end.Undone, m.end.Unsent = false, false
	if m.good || m.reader.Committed() {
		code := "upstream_cut"
		if _, own := err.(silence); own {
			code = "upstream_silent"
		}
		m.pass(m.reader.Cut(code, "the stream ended before the model was done: "+m.reason(err)))
		m.keep = false
	}
}

// reason says why, without addresses.
func (m *meter) reason(err error) string {
	if own, ok := err.(silence); ok {
		return string(own)
	}
	if errors.Is(err, weir.ErrAttemptTimeout) {
		return "it took too long"
	}
	return "the connection was lost"
}

// Close is io.Closer's. The caller may have left before the end.
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
	if m.ready = nil; m.late == nil { // nobody reads into it any more
		pool.Put(m.buffer)
		m.buffer = nil
	}
	m.stop(context.Canceled)
	if m.good {
		m.account()
	}
	return err
}

// Outcome is weir.Meter's.
func (m *meter) Outcome() outcome.Outcome { return m.end }

// account tells everybody what the answer has used. One that does not say settles at
// the estimate.
func (m *meter) account() {
	x, o := m.x, &m.x.d.o
	usage := m.reader.Usage()
	if usage.Said && m.end.Class == outcome.OK {
		o.Tokens.Observe(x.expected(), usage.Input, usage.Output)
		m.end.Usage = x.used(usage)
		if b := billOf(m.ctx); b != nil {
			b.usage.Store(new(units(tokens.Plain.Settle(x.expected(), usage))))
		}
		if cost, ok := m.cost(); ok && m.resp.Trailer != nil {
			m.resp.Trailer.Set(CostHeader, cost.String())
		}
	}
	if m.end.Class == outcome.OK {
		m.remember()
	}
	m.tell()
}

// announceCost says what the answer has cost, if that is known before its headers go.
func (m *meter) announceCost() {
	m.resp.Header.Set(EstimateHeader, strconv.FormatInt(m.x.expected().Total(), 10))
	if m.err != io.EOF {
		return
	}
	if cost, ok := m.cost(); ok {
		m.resp.Header.Set(CostHeader, cost.String())
	}
}
