package weir

import (
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/outcome"
)

// A Slot is the place of an attempt among the attempts in flight. It is for callers that know more about the attempt
// than its outcome: that the upstream has no work yet, or that the response may arrive after the caller has left.
// Heard may be called at any time. The other methods must be called before the attempt's report, and not
// concurrently. The report releases the slot, or keeps it for a late response, so a caller need not return it.
type Slot struct {
	flight  *flight
	clock   Clock
	breaker *breaker.Breaker
	sent    time.Duration
	slot    inflight.Slot  // 0 after Yield
	taken   time.Duration  // when Retake took it; 0 if never
	drop    func()         // ends the attempt after its caller has left
	told    sync.WaitGroup // waits for the attempt's report
}

// Yield gives up the slot. The caller must call free, without holding a lock, so that other calls can have the slot.
// Yield is for an attempt whose body does not arrive: the upstream has nothing to do meanwhile. Retake takes a slot
// again.
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

// Retake puts the attempt in flight again after Yield, even if no slot is free.
func (s *Slot) Retake() {
	if s.slot == 0 {
		s.taken = s.clock.Now()
		s.slot = s.flight.bound.Force(s.taken)
	}
}

// Leave states that the attempt's caller has left and the attempt continues. The slot is kept until the response,
// until drop is called because an attempt that was sent later was answered, or for inflight.Held. Leave returns false
// if there was such a response already.
func (s *Slot) Leave(drop func()) bool {
	if s.flight.bound.Later(s.slot) {
		return false
	}
	s.drop = drop
	return true
}

// Heard reports the response that arrived after Leave. It waits for the attempt's report, and does nothing if ctx has
// ended by then. A response to an old attempt is the first sign that a stall is over.
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

// land gives the slot back to the permit when the attempt is over; 0 without a slot.
func (s *Slot) land(p *Permit) {
	if s == nil {
		return
	}
	p.slot, p.drop = s.slot, s.drop
	if s.taken != 0 {
		p.sent = s.taken
	}
}

// reported lets Heard continue.
func (s *Slot) reported() {
	if s != nil {
		s.told.Done()
	}
}
