package decide

import (
	"errors"
	"hash/maphash"
	"time"
)

// A share is what one caller holds of the common limits. It is guarded by permits.mu.
type share struct {
	permits, waiting int

	// keys are hashes of recent scope values: of the current period and of the previous one.
	keys  [2]map[uint64]struct{}
	since time.Time

	pauses map[string]time.Time // end of each pause
}

// while is the minimum time for which a key counts. The maximum is twice that.
const while = 10 * time.Minute

var (
	errPermits = errors.New("the caller has too many unreported permits: report the completed ones")
	errWaiting = errors.New("the caller has too many acquire requests in flight: wait for their responses")
	errKeys    = errors.New("the caller has used too many different keys recently: try again later")
)

// share returns the caller's share.
func (t *permits) share(caller string) *share {
	s := t.shares[caller]
	if s == nil {
		s = &share{since: time.Now()}
		t.shares[caller] = s
	}
	return s
}

// begin admits an acquire of a caller. Call answered after the response. keys are the values that count toward
// MaxKeys.
func (t *permits) begin(caller string, r *Rights, keys []uint64) error {
	if r == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.share(caller)
	switch {
	case s.waiting >= r.MaxWaiting:
		return errWaiting
	case !s.names(time.Now(), keys, r.MaxKeys):
		return errKeys
	}
	s.waiting++
	return nil
}

func (t *permits) answered(caller string, r *Rights) {
	if r == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share(caller).waiting--
}

// names records keys. It returns false if there are too many.
func (s *share) names(now time.Time, keys []uint64, most int) bool {
	switch old := now.Sub(s.since); {
	case old >= 2*while || s.keys[0] == nil:
		s.keys, s.since = [2]map[uint64]struct{}{{}, nil}, now
	case old >= while:
		s.keys, s.since = [2]map[uint64]struct{}{{}, s.keys[0]}, now
	}
	for _, k := range keys {
		if _, known := s.keys[0][k]; known {
			continue
		}
		if _, before := s.keys[1][k]; before {
			delete(s.keys[1], k)
		} else if len(s.keys[0])+len(s.keys[1]) >= most {
			return false
		}
		s.keys[0][k] = struct{}{}
	}
	return true
}

// pauses records a pause of the caller's own calls. It returns false if there are too many.
func (t *permits) pauses(caller, what string, until time.Time, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, now := t.share(caller), time.Now()
	if _, known := s.pauses[what]; !known && len(s.pauses) >= most {
		for old, end := range s.pauses {
			if !now.Before(end) {
				delete(s.pauses, old)
			}
		}
		if len(s.pauses) >= most {
			return false
		}
	}
	if s.pauses == nil {
		s.pauses = make(map[string]time.Time)
	}
	s.pauses[what] = until
	return true
}

var seed = maphash.MakeSeed()

// marks returns hashes of the keys of a call for its share.
func (q *acquireRequest) marks() (all []uint64) {
	for scope, value := range q.Keys {
		var h maphash.Hash
		h.SetSeed(seed)
		for _, part := range [...]string{q.Upstream, scope, value} {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		all = append(all, h.Sum64())
	}
	return all
}
