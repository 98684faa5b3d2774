package logs

import (
	"sync"
	"time"
)

// A kind is what lines have in common that say the same. Its parts are weir's own
// words and names that policies declare, so there are few kinds.
type kind struct{ message, upstream, limit, why string }

// A sieve lets so many lines of a kind through in a second. The zero sieve lets
// all through.
type sieve struct {
	most int

	mu    sync.Mutex
	kinds map[kind]*second
}

// A second begins with the first line in it.
type second struct {
	began      time.Time
	passed     int
	suppressed int // since the last line that passed
}

// pass reports whether a line may be written now, and how many were not since the
// last that was.
func (s *sieve) pass(k kind) (suppressed int, ok bool) {
	if s.most <= 0 {
		return 0, true
	}
	return s.passAt(time.Now(), k)
}

func (s *sieve) passAt(now time.Time, k kind) (suppressed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.kinds[k]
	if at == nil {
		at = &second{began: now}
		if s.kinds == nil {
			s.kinds = make(map[kind]*second)
		}
		s.kinds[k] = at
	}
	if now.Sub(at.began) >= time.Second {
		at.began, at.passed = now, 0
	}
	if at.passed == s.most {
		at.suppressed++
		return 0, false
	}
	suppressed, at.suppressed = at.suppressed, 0
	at.passed++
	return suppressed, true
}
