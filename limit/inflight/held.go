package inflight

import (
	"slices"
	"time"
)

// A held is the slot of an attempt whose caller has left: the upstream still has the work. The slot becomes free with
// its response, or with the response to any later attempt.
type held struct {
	attempt uint64
	until   time.Duration
	drop    func() // ends the attempt if it continues; nil otherwise
}

// hold keeps a slot. Held slots are in the order in which their attempts were sent.
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

// forget frees the slots of attempts that were sent no later than an answered one.
func (s *state) forget(answered uint64) (freed []held) {
	i := 0
	for i < len(s.held) && s.held[i].attempt <= answered {
		i++
	}
	return s.release(i)
}

// expire frees slots that were held for too long.
func (s *state) expire(now time.Duration) (freed []held) {
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		if h.until <= now {
			freed = append(freed, h)
		}
		return h.until <= now
	})
	return freed
}

// oldest frees the slot of the attempt that was sent first.
func (s *state) oldest() (freed []held) { return s.release(min(1, len(s.held))) }

// release frees the first n held slots. The caller must call their drop without the lock.
func (s *state) release(n int) (freed []held) {
	if n == 0 {
		return nil
	}
	freed = slices.Clone(s.held[:n])
	s.held = slices.Delete(s.held, 0, n)
	return freed
}
