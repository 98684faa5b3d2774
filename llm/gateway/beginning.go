package gateway

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// begin reads the response until it can decide whether it is a valid answer, and reports whether it is. It reads up to
// the first content, an error in the body, or the end. The bytes read are held back up to a size limit, so that another
// attempt can still replace the response.
func (m *meter) begin() (bad outcome.Outcome, ok bool) {
	o := &m.x.d.o
	if m.page() {
		m.err = errPage
		return notAnswer, false
	}
	if m.reader.Streamed() {
		m.first = m.after(o.FirstContent, errFirstContent)
		m.readAhead(m.holdTime())
	} else {
		// A server may send headers before the model has generated the body.
		m.silent(o.FirstContent)
		m.readAhead(-1)
	}
	if m.err != nil && m.end.Class != outcome.OK && !(m.reader.Committed() && m.reader.Streamed()) { // the caller has received nothing
		return m.end, false
	}
	if p := m.reader.Failed(); p != nil && !m.reader.Committed() {
		return p.Outcome, false
	}
	m.good = true
	if m.announceCost(); m.err != nil { // the complete answer was read
		m.remember()
		return bad, true
	}
	if m.begun || !m.reader.Streamed() {
		m.silent(o.Idle)
	}
	m.total = m.after(o.Total, errTotal)
	return bad, true
}

// holdTime returns how long the start of a stream is held back. This is as long as another tier could answer instead.
func (m *meter) holdTime() time.Duration {
	if m.x.d.o.Hold > 0 {
		return m.x.d.o.Hold
	}
	if b := m.x.progress; b != nil && b.tier != "" {
		if at, ok := m.ctx.Deadline(); ok {
			return time.Until(at) + defaultHold // the attempt ends before that
		}
	}
	return defaultHold
}

// silent sets the maximum time between chunks while a read waits. A negative value means no limit.
func (m *meter) silent(most time.Duration) { m.silence = most }

// page reports whether the response is an HTML page. Proxies and captive portals return such pages.
func (m *meter) page() bool {
	return m.x.route.Generates && strings.HasPrefix(strings.ToLower(m.resp.Header.Get("Content-Type")), "text/html")
}

var errPage = errors.New("the response is an HTML page")

// after starts a timer that ends the attempt. It returns nil if d is not positive.
func (m *meter) after(d time.Duration, why error) *time.Timer {
	if d <= 0 {
		return nil
	}
	return time.AfterFunc(d, func() { m.stop(why) })
}

// certain reports whether the start of the answer can be judged, or no more of it can be held back.
func (m *meter) certain() bool {
	return m.err != nil || len(m.ready) > mostHeld || !m.room(bufferSize) || m.reader.Failed() != nil ||
		m.reader.Committed() && m.reader.Streamed() || m.reader.Blind()
}

// readAhead reads the start of the answer for at most the given time. If most is negative, it reads until the start can
// be judged.
func (m *meter) readAhead(most time.Duration) {
	if most < 0 {
		for !m.certain() {
			m.keepChunk(m.next())
		}
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	for !m.certain() {
		if m.late == nil && m.atHand() {
			m.keepChunk(m.next())
			continue
		}
		if m.late == nil {
			m.late = make(chan chunk, 1)
			go func(late chan<- chunk) {
				n, err := m.src.Read(m.buffer[:])
				late <- chunk{n, err}
			}(m.late)
		}
		select {
		case c := <-m.late:
			m.late = nil
			m.keepChunk(c)
		case <-timer.C:
			return // pass on what there is: the caller has waited long enough
		}
	}
}

// atHand reports whether data is already buffered, as the first words often are with the headers. Such a read cannot
// block and needs no goroutine.
func (m *meter) atHand() bool {
	b, ok := m.src.(interface{ Ready() bool })
	return ok && b.Ready()
}

// keepChunk processes a chunk and copies the bytes that are held back, because the reader may reuse its memory.
func (m *meter) keepChunk(c chunk) {
	before := m.ready // does not share the reader's memory
	m.ready = nil
	m.take(c)
	m.ready = append(before, m.ready...)
}

var _ io.ReadCloser = (*meter)(nil)
