package weir

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// lately is what is known of attempts where somebody listens for violations.
type lately struct {
	inFlight atomic.Int64
	next     atomic.Uint32
	began    [8]atomic.Int64 // instants of the latest attempts, a ring
}

// starts notes that an attempt begins.
func (l *lately) starts(now time.Duration) {
	l.inFlight.Add(1)
	l.began[l.next.Add(1)%uint32(len(l.began))].Store(int64(now))
}

// ago is how long ago the latest attempts began.
func (l *lately) ago(now time.Duration) (all []time.Duration) {
	last := l.next.Load()
	for i := range min(last, uint32(len(l.began))) {
		began := time.Duration(l.began[(last-i)%uint32(len(l.began))].Load())
		all = append(all, max(0, now-began))
	}
	return all
}

// violated tells of a throttle although limits had allowed the attempt.
func (p *Permit) violated(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if o.Class != outcome.Throttled || o.Unsent || p.limits.Len() == 0 {
		return
	}
	tell(u.options.Events.Violated, Violation{
		Subject: subject(u, p.plan, p.id, p.keys), Code: o.Code, Levels: p.levels(now),
		InFlight: u.lately.inFlight.Load(), Last: u.lately.ago(now),
	})
}
