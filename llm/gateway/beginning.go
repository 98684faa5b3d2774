package gateway

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// begin reads the answer until it is certain that it is one, and reports whether it
// is: until its first content, an error inside of it, or its end. What came before is
// held back within bounds, so that another attempt can still take its place.
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
		// It has its headers before the model has written it where a server sends them early.
		m.silent(o.FirstContent)
		m.readAhead(-1)
	}
	if m.err != nil && m.end.Class != outcome.OK && !(m.reader.Committed() && m.reader.Streamed()) { // nothing has been passed on
		return m.end, false
	}
	if p := m.reader.Failed(); p != nil && !m.reader.Committed() {
		return p.Outcome, false
	}
	m.good = true
	if m.announceCost(); m.err != nil { // all of it is there
		m.remember()
		return bad, true
	}
	if m.begun || !m.reader.Streamed() {
		m.silent(o.Idle)
	}
	m.total = m.after(o.Total, errTotal)
	return bad, true
}

// holdTime is how long the beginning of a stream is held back: as long as another tier can
// answer in its place.
func (m *meter) holdTime() time.Duration {
	if m.x.d.o.Hold > 0 {
		return m.x.d.o.Hold
	}
	if b := m.x.progress; b != nil && b.tier != "" {
		if at, ok := m.ctx.Deadline(); ok {
			return time.Until(at) + defaultHold // the attempt ends before
		}
	}
	return defaultHold
}

// silent lets the answer bring nothing for so long, while something is waited for; below 0
// for as long as it likes.
func (m *meter) silent(most time.Duration) { m.silence = most }

// page reports whether the response is an HTML page, as proxies and portals put in the
// place of one.
func (m *meter) page() bool {
	return m.x.route.Generates && strings.HasPrefix(strings.ToLower(m.resp.Header.Get("Content-Type")), "text/html")
}

var errPage = errors.New("the response is an HTML page")

// after ends the attempt when a time is up, nil if there is no such time.
func (m *meter) after(d time.Duration, why error) *time.Timer {
	if d <= 0 {
		return nil
	}
	return time.AfterFunc(d, func() { m.stop(why) })
}

// certain reports whether it is known what the beginning is worth, or too much of it is
// held.
func (m *meter) certain() bool {
	return m.err != nil || len(m.ready) > mostHeld || !m.room(bufferSize) || m.reader.Failed() != nil ||
		m.reader.Committed() && m.reader.Streamed() || m.reader.Blind()
}

// readAhead reads the beginning, for some time at most; below 0 until it is known.
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
			return // the caller has waited long enough for a sign of life
		}
	}
}

// atHand reports whether more has come already, as the first words often have with the headers: a read that waits for
// nobody needs nobody to wait for it.
func (m *meter) atHand() bool {
	b, ok := m.src.(interface{ Ready() bool })
	return ok && b.Ready()
}

// keepChunk takes a chunk and keeps what is held of it: the reader may use its memory
// again.
func (m *meter) keepChunk(c chunk) {
	before := m.ready // no memory of the reader's
	m.ready = nil
	m.take(c)
	m.ready = append(before, m.ready...)
}

var _ io.ReadCloser = (*meter)(nil)
