package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit/inflight"
)

// A berth is the slot of an attempt whose body its caller sends. While the body has been waited for
// for long the slot is somebody else's: the upstream has nothing to work on yet. When all of the body is
// there it is in flight again, whether there is a slot or not. It is under replay.mu.
type berth struct {
	flight *flight
	clock  Clock
	slot   inflight.Slot // 0 while it is given up
	taken  time.Duration // when it was taken again; 0 if it was not
	over   bool          // the attempt is
}

// newBerth takes the attempt's slot, nil if it has none.
func (s *sender) newBerth() *berth {
	p := &s.run.permit
	if s.replay == nil || s.replay.direct || p.slot == 0 {
		return nil
	}
	b := &berth{flight: p.flight, clock: s.run.u.clock, slot: p.slot}
	s.replay.mu.Lock()
	s.replay.wait.berth = b
	if !s.replay.wait.since.IsZero() { // a read of the attempt before goes on
		s.replay.alarm(time.Now())
	}
	s.replay.mu.Unlock()
	return b
}

// held reports whether there is a slot to give up.
func (b *berth) held() bool { return b != nil && b.slot != 0 && !b.over }

// leave takes the slot from the attempt, for free to give it back.
func (b *berth) leave() (s inflight.Slot) {
	if b.held() {
		s, b.slot = b.slot, 0
	}
	return s
}

// free lets others have a slot. No lock is held.
func (b *berth) free(s inflight.Slot) {
	if s != 0 {
		b.flight.bound.Undo(s)
		b.flight.line.Kick()
	}
}

// whole puts the attempt in flight again: the upstream has all of the body now.
func (b *berth) whole() {
	if b != nil && b.slot == 0 && !b.over {
		b.taken = b.clock.Now()
		b.slot = b.flight.bound.Force(b.taken)
	}
}

// landing gives the attempt its slot back, as it is over: 0 if it has none.
func (s *sender) landing(b *berth) {
	if b == nil {
		return
	}
	p := &s.run.permit
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	b.over = true
	if p.slot = b.slot; b.taken != 0 {
		p.sent = b.taken
	}
}
