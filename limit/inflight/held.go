package inflight

import (
	"slices"
	"time"
)

// A held slot is that of an attempt whose caller has left: the upstream still has the
// work. The answer frees it, or the answer to whatever was sent later.
type held struct {
	attempt uint64
	until   time.Duration
	drop    func() // ends the attempt, if it goes on; nil if it does not
}

// hold keeps a slot. They are kept in the order in which they were sent.
func (s *state) hold(h held) {
	i, _ := slices.BinarySearchFunc(s.held, h.attempt, func(h held, to uint64) int {
		switch {
		case h.attempt < to:
			return -1
		case h.attempt > to:
			return 1
		}
		return 0
	})
	s.held = slices.Insert(s.held, i, h)
}

// forget frees what was sent no later than an attempt that was answered.
func (s *state) forget(answered uint64) (freed []held) {
	i := 0
	for i < len(s.held) && s.held[i].attempt <= answered {
		i++
	}
	return s.release(i)
}

// expire frees what was held for too long.
func (s *state) expire(now time.Duration) (freed []held) {
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		if h.until <= now {
			freed = append(freed, h)
		}
		return h.until <= now
	})
	return freed
}

// oldest frees the one that was sent first.
func (s *state) oldest() (freed []held) { return s.release(min(1, len(s.held))) }

// release frees the n that were sent first. Whoever frees them calls their drop without the lock.
func (s *state) release(n int) (freed []held) {
	if n == 0 {
		return nil
	}
	freed = slices.Clone(s.held[:n])
	s.held = slices.Delete(s.held, 0, n)
	return freed
}
