package weir

import (
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/outcome"
)

// A Slot is the place of an attempt among what is in flight. It is for those who know more of
// the attempt than its outcome: that the upstream has nothing to work on yet, or that its
// answer may come when its caller has left. Heard may be called at any time, the others by one at
// a time, before the attempt's report. The slot itself is given back by that report, or kept for an
// answer that is still to come: nobody who has a Slot need return it.
type Slot struct {
	flight  *flight
	clock   Clock
	breaker *breaker.Breaker
	sent    time.Duration
	slot    inflight.Slot  // 0 while it is given up
	taken   time.Duration  // when it was taken again; 0 if it was not
	drop    func()         // ends the attempt, whose caller has left
	told    sync.WaitGroup // for the attempt's report
}

// Yield gives the slot up. Others can have it as soon as free is called, with no lock held. It is for
// an attempt whose body does not come: the upstream has nothing to do meanwhile. Retake ends that.
func (s *Slot) Yield() (free func()) {
	slot := s.slot
	s.slot = 0
	return func() {
		if slot != 0 {
			s.flight.bound.Undo(slot)
			s.flight.line.Kick()
		}
	}
}

// Retake puts the attempt in flight again after Yield, whether there is a slot or not.
func (s *Slot) Retake() {
	if s.slot == 0 {
		s.taken = s.clock.Now()
		s.slot = s.flight.bound.Force(s.taken)
	}
}

// Leave says that the attempt's caller has left while the attempt goes on:
// the slot is kept until it is answered, until drop is called because something was answered that
// was sent later, or for inflight.Held. It reports false if such an answer is there already.
func (s *Slot) Leave(drop func()) bool {
	if s.flight.bound.Later(s.slot) {
		return false
	}
	s.drop = drop
	return true
}

// Heard tells, once the attempt has been reported, of the answer that came to it after Leave, unless
// ctx has ended by then: an answer to a call of before is the first sign that a stall is over.
func (s *Slot) Heard(ctx context.Context, class outcome.Class) {
	s.told.Wait()
	if ctx.Err() != nil {
		return
	}
	now := s.clock.Now()
	s.flight.bound.Heard(now, s.slot, s.flight.answer(now, s.sent, class))
	s.flight.line.Kick()
	if class == outcome.OK || class == outcome.Rejected {
		s.breaker.Wake(now) // the upstream answers again
	}
}

// land gives the permit its slot back as the attempt is over: 0 if it has none.
func (s *Slot) land(p *Permit) {
	if s == nil {
		return
	}
	p.slot, p.drop = s.slot, s.drop
	if s.taken != 0 {
		p.sent = s.taken
	}
}

// reported lets Heard go on.
func (s *Slot) reported() {
	if s != nil {
		s.told.Done()
	}
}
