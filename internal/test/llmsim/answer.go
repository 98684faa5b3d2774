package llmsim

import (
	"fmt"
	"net/http"
	"time"
)

// answer responds to an admitted call, possibly with a fault.
func (p *Provider) answer(w http.ResponseWriter, c *call, d dialect) {
	c.fault = p.take(c, true)
	if !c.free && c.op != "embeddings" {
		c.compose()
	}
	c.distort()
	if c.fault.at(BeforeHeaders) {
		p.stop(w, c)
		return
	}
	if c.fault.is(Slow) && !c.sleep(c.fault.Delay) {
		c.gone()
		return
	}
	if c.stream {
		s := &stream{p: p, c: c, d: d, w: w, flush: http.NewResponseController(w)}
		s.run()
		return
	}
	p.plain(w, c, d)
}

// plain sends the complete response at the time when a stream would end.
func (p *Provider) plain(w http.ResponseWriter, c *call, d dialect) {
	if c.grant != nil && !c.sleep(c.spec.FirstToken+time.Duration(max(c.output-1, 0))*c.spec.Between) {
		c.gone()
		return
	}
	body := d.whole(c)
	switch c.fault.kind() {
	case BadJSON:
		body = body[:len(body)*2/3]
	case EmptyBody:
		body = nil
	}
	if c.grant != nil {
		p.wrote(c, c.output)
	}
	p.limits(c, nil, w.Header())
	d.header(c, w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	p.status(c, http.StatusOK)
	w.WriteHeader(http.StatusOK)
	if c.fault.is(Hang) || c.fault.is(Reset) || c.fault.is(Drop) {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		p.stop(w, c)
		return
	}
	if _, err := w.Write(body); err != nil || c.r.Context().Err() != nil {
		c.gone()
		return
	}
	p.done(c)
}

// stop ends a response that has begun and will not continue.
func (p *Provider) stop(w http.ResponseWriter, c *call) {
	p.mu.Lock()
	c.at.Outcome = Failed
	p.mu.Unlock()
	switch c.fault.Kind {
	case Reset:
		reset(w)
	case Drop:
		panic(http.ErrAbortHandler)
	default:
		<-c.r.Context().Done()
		c.gone()
	}
}

// A stream is a response in events.
type stream struct {
	p     *Provider
	c     *call
	d     dialect
	w     http.ResponseWriter
	flush *http.ResponseController
	sent  int // pieces
}

func (s *stream) run() {
	p, c := s.p, s.c
	p.limits(c, nil, s.w.Header())
	s.d.header(c, s.w.Header())
	s.w.Header().Set("Content-Type", s.d.streams(c))
	s.w.Header().Set("Cache-Control", "no-cache")
	p.status(c, http.StatusOK)
	s.w.WriteHeader(http.StatusOK)
	_ = s.flush.Flush()
	p.opened(+1)
	defer p.opened(-1)
	if c.fault.is(EmptyBody) {
		p.done(c)
		return
	}
	if c.fault.at(AfterHeaders) {
		p.stop(s.w, c)
		return
	}
	if !s.write(s.d.opening(c)...) || !s.pieces() || !s.write(s.d.closing(c)...) {
		return
	}
	p.done(c)
}

// pieces writes the text. It returns false if the stream ends with it.
func (s *stream) pieces() bool {
	c, most := s.c, len(s.c.pieces)
	if c.fault.is(NeverEnding) {
		most = 1 << 62
		c.spec.Between = max(c.spec.Between, 10*time.Millisecond)
	}
	for i := range most {
		if c.fault.due(i) {
			s.breakOff()
			return false
		}
		if !s.pause(i) {
			c.gone()
			return false
		}
		if !s.write(s.d.piece(c, i%max(len(c.pieces), 1))) {
			return false
		}
		s.count(i)
	}
	if c.fault.due(most) {
		s.breakOff()
		return false
	}
	return true
}

// pause waits for the i-th piece.
func (s *stream) pause(i int) bool {
	m := s.c.spec
	if i > 0 {
		return s.c.sleep(m.Between * time.Duration(m.PerEvent))
	}
	return s.patiently(m.FirstToken)
}

// patiently waits, with occasional pings if the family supports pings.
func (s *stream) patiently(d time.Duration) bool {
	const often = 10 * time.Second
	for ; d > often; d -= often {
		if !s.c.sleep(often) {
			return false
		}
		if b := s.d.ping(s.c); b != nil && !s.write(b) {
			return false
		}
	}
	return s.c.sleep(d)
}

// count records that piece i was sent.
func (s *stream) count(i int) {
	s.sent = i + 1
	n := s.c.upTo(s.sent) - s.c.upTo(i)
	if i >= len(s.c.pieces) {
		n = int64(s.c.spec.PerEvent)
	}
	s.p.wrote(s.c, n)
}

// breakOff applies a fault in the middle of a stream.
func (s *stream) breakOff() {
	p, c := s.p, s.c
	p.mu.Lock()
	c.at.Outcome = Failed
	p.mu.Unlock()
	switch c.fault.Kind {
	case StreamError:
		s.write(s.d.broken(c, &failure{code: broken, status: c.fault.status(529)}))
	case BadJSON:
		s.write(s.d.spoilt(c))
	case Cut:
	default:
		p.stop(s.w, c)
	}
}

// write sends events immediately. It returns false if the caller has disconnected.
func (s *stream) write(events ...[]byte) bool {
	for _, e := range events {
		if _, err := s.w.Write(e); err != nil || s.c.r.Context().Err() != nil {
			s.c.gone()
			return false
		}
	}
	if s.flush.Flush() != nil {
		s.c.gone()
		return false
	}
	return true
}

// distort applies faults of the usage.
func (c *call) distort() {
	switch {
	case c.fault.is(NoUsage):
		c.silent = true
	case c.fault.is(WrongUsage) && c.fault.Factor == 0:
		c.told = tokens{in: -1, out: 1 << 53}
	case c.fault.is(WrongUsage):
		c.told.in = int64(float64(c.told.in) * c.fault.Factor)
		c.told.out = int64(float64(c.told.out) * c.fault.Factor)
	}
}
