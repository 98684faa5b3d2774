package lambdax

import (
	"context"
	"sync"
	"time"
)

// MemoryRecords are Records in the memory of one process, for tests and for single processes that are not frozen. They help
// little in a Lambda function, because another instance may receive the message again. The zero MemoryRecords are ready to use.
// They are safe for concurrent use.
type MemoryRecords struct {
	mu    sync.Mutex
	all   map[string]*memoryRecord
	swept time.Time
}

type memoryRecord struct {
	state    State // Held while claimed, Ours while not claimed
	owner    string
	until    time.Time
	attempts int
	stalls   int
}

var _ Records = (*MemoryRecords)(nil)

// Begin implements Records.
func (r *MemoryRecords) Begin(_ context.Context, id, owner string, until time.Time) (Claim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.sweep(now)
	m := r.all[id]
	switch {
	case m == nil, m.state == Completed && !now.Before(m.until):
		m = &memoryRecord{}
		r.all[id] = m
	case m.state == Completed:
		return Claim{ID: id, State: Completed}, nil
	case m.state == Held && m.owner != owner && now.Before(m.until):
		return Claim{ID: id, State: Held}, nil
	case m.state == Held && m.owner != owner:
		m.stalls++
	}
	if m.owner != owner {
		m.attempts++
	}
	m.state, m.owner, m.until = Held, owner, until
	return Claim{ID: id, Owner: owner, State: Ours, Attempts: m.attempts, Stalls: m.stalls}, nil
}

// End implements Records.
func (r *MemoryRecords) End(_ context.Context, c Claim, how Ending, keep time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.all[c.ID]
	if m == nil || m.owner != c.Owner {
		return false, nil
	}
	if m.state != Held {
		return true, nil // an earlier call ended it
	}
	m.stalls = 0
	m.state, m.until = Ours, keep
	switch how {
	case Handled:
		m.state = Completed
	case GaveBack:
		m.attempts--
	}
	return true, nil
}

// sweep deletes expired records, at most once a minute.
func (r *MemoryRecords) sweep(now time.Time) {
	if r.all == nil {
		r.all = make(map[string]*memoryRecord)
	}
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for id, m := range r.all {
		if m.state != Held && !now.Before(m.until) {
			delete(r.all, id)
		}
	}
}
