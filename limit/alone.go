package limit

import (
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// While the store is away a process goes on by itself: first at the rate at which it
// was served last, then at a share of the limit. What it lets go is counted, and told
// to the store when that is back.

const (
	aloneBurst = 250 * time.Millisecond // of its rate, that a process may let go at once
	aloneLook  = 20 * time.Millisecond  // how often who waits looks whether the store is back
)

// share is this process's part of every limit.
func (f *Fleet) share() float64 {
	if f.o.Share > 0 {
		return f.o.Share
	}
	return 1 / float64(max(1, f.alive.Load()))
}

// jitter spreads a fleet that comes back.
func (f *Fleet) jitter() time.Duration {
	return f.within(min(time.Second, max(30*time.Millisecond, time.Duration(f.alive.Load())*time.Millisecond)))
}

// alone serves those at the front from this process's own part.
func (q *queue) alone(now time.Duration) {
	var wait time.Duration
	why := 0
	for _, p := range q.pools {
		p.aloneLimiter(now)
	}
	q.mu.Lock()
	if q.group.fleet.Away() {
		q.resumeAt = now + q.group.fleet.jitter()
	}
	for w := q.front(); w != nil; w = q.front() {
		if wait, why = q.aloneFor(now, w); wait > 0 {
			break
		}
		q.remove(w)
		w.by = noExpiry
		w.finish(Verdict{OK: true})
	}
	q.mu.Unlock()
	if wait > 0 {
		q.refuse(now, wait, why)
		q.mu.Lock()
		q.next, q.there, q.why = now+min(wait, aloneLook), now+wait, why
		q.mu.Unlock()
	}
}

// aloneFor takes the costs of a waiter, all or none, or says how long he has to wait
// for which limit.
func (q *queue) aloneFor(now time.Duration, w *waiter) (wait time.Duration, why int) {
	for i, p := range q.pools {
		if d := p.aloneLimiter(now).Ask(now, w.costs[i]); d > wait {
			wait, why = d, i
		}
		if p.quotaLeft(now) < w.costs[i] {
			return max(time.Second, p.quotaReset(now)), i
		}
	}
	if wait > 0 {
		return wait, why
	}
	for i, p := range q.pools {
		p.takeAlone(now, w.costs[i])
		w.turns[i] = Turn{bucket.Turn{Cost: w.costs[i]}}
	}
	return 0, 0
}

// takeAlone takes n units of this process's own part.
func (p *pool) takeAlone(now time.Duration, n int64) bool {
	own := p.own.Load()
	if own == nil || n < 0 || p.quotaLeft(now) < n || !own.Try(now, n) {
		return false
	}
	p.ownUsed.Add(n)
	p.group.fleet.spent.Add(n)
	if p.spec.Load().rule.Shape == Fixed {
		p.ownLeft.Add(-n)
	}
	return true
}

// aloneLimiter is what holds the limit while the store is away.
func (p *pool) aloneLimiter(now time.Duration) *Limiter {
	own := p.own.Load()
	if own == nil {
		own = p.beginAlone(now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ownEnd != 0 && now >= p.ownEnd {
		p.ownEnd = 0
		own.Pace(now, p.spec.Load().perSecond(p.group.fleet.storeTime(now))*p.group.fleet.share())
	}
	return own
}

func (p *pool) beginAlone(now time.Duration) *Limiter {
	p.group.isActive(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	f, s := p.group.fleet, p.spec.Load()
	full := s.perSecond(f.storeTime(now))
	rate := min(full, p.demand.lately(now))
	if rate <= 0 {
		rate = full * f.share()
	}
	own, err := New(now, Limit{Name: s.limit.Name, Rate: bucket.Rate{
		Amount: max(1, int64(full*1000)), Per: 1000 * time.Second,
		Burst: max(1, min(s.most(), int64(rate*aloneBurst.Seconds()))),
	}})
	if err != nil { // a rate that no bucket holds: nothing goes
		own, _ = New(now, Limit{Name: s.limit.Name, Rate: bucket.Rate{Amount: 1, Per: time.Hour}})
	}
	own.Pace(now, rate)
	p.ownEnd = now + f.o.Coast
	p.ownUsed.Store(0)
	p.quota(now, s)
	p.own.Store(own)
	return own
}

// quota is how much of a calendar window this process may use alone: its share of
// what was left when it was last told.
func (p *pool) quota(now time.Duration, s *spec) {
	if s.rule.Shape != Fixed {
		return
	}
	f := p.group.fleet
	at := f.storeTime(now)
	w := s.limit.Windows(at)
	left := s.rule.Amount
	if p.seen.known && at.Before(p.seen.end) {
		left = p.seen.grant.Left
	}
	p.ownWin = w.End
	p.ownLeft.Store(int64(float64(left) * f.share()))
}

// quotaLeft is how much of a calendar window is left to this process alone.
func (p *pool) quotaLeft(now time.Duration) int64 {
	s := p.spec.Load()
	if s.rule.Shape != Fixed {
		return bucket.All
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.group.fleet.storeTime(now).Before(p.ownWin) {
		p.quota(now, s)
	}
	return p.ownLeft.Load()
}

// quotaReset is how long until the calendar window ends.
func (p *pool) quotaReset(now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ownWin.Sub(p.group.fleet.storeTime(now))
}

// resume ends going alone: what still counts of what was let go is owed.
func (p *pool) resume(now time.Duration) {
	own := p.own.Load()
	if own == nil || !p.own.CompareAndSwap(own, nil) {
		return
	}
	n := p.ownUsed.Swap(0)
	s := p.spec.Load()
	rate := own.Look(now).PerSecond
	switch s.rule.Shape {
	case Bucket:
		n = min(n, int64(rate*float64(s.rule.Meter.Cap/s.rule.Meter.Unit)/s.limit.PerSecond())+1)
	case Rolling:
		n = min(n, int64(rate*s.limit.Per.Seconds())+1)
	}
	p.owe(now, n)
}
