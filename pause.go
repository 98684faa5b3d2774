package weir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// held names what a pause holds: a pool, a limit under a key, or an operation.
type held struct {
	limit     *limit.Registry // nil if it is no limit
	operation *atomic.Int64   // nil if it is no operation; see plan.paused
	key       string          // the pool, or the limit's key
}

// A stop is a pause that is known by whom it holds.
type stop struct {
	until time.Duration
	quota time.Duration // until when a quota is spent; before until if a rate was exceeded after that
	known bool          // the upstream said when the quota comes back
}

// pauses are those that a limiter cannot keep: of pools, and of why a limit is paused.
// There is one set for each upstream, for this process alone. It costs a call nothing
// while there is none.
type pauses struct {
	last atomic.Int64 // when the last of them ends
	mu   sync.Mutex
	by   map[held]stop
	full time.Duration // until when none of them ends, once there were too many
}

// mostPauses bounds how many are remembered. Callers whose pause is beyond it are told
// by the upstream itself.
const mostPauses = 10_000

// in is the pause that is in force, the zero stop if there is none.
func (p *pauses) in(now time.Duration, of held) stop {
	if time.Duration(p.last.Load()) <= now {
		return stop{}
	}
	p.mu.Lock()
	s := p.by[of]
	p.mu.Unlock()
	if s.until <= now {
		return stop{}
	}
	return s
}

// add remembers a pause. None is ever made shorter.
func (p *pauses) add(now time.Duration, of held, more stop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.by[of]
	if !ok && !p.room(now) {
		return
	}
	if s.quota <= now || more.quota > s.quota {
		s.quota, s.known = more.quota, more.known
	}
	s.until = max(s.until, more.until)
	p.by[of] = s
	p.full = min(p.full, s.until)
	raise(&p.last, int64(s.until))
}

// room makes room for another one, if there is any.
func (p *pauses) room(now time.Duration) bool {
	if p.by == nil {
		p.by = make(map[held]stop)
	}
	if len(p.by) < mostPauses {
		return true
	}
	if now < p.full {
		return false // each of those for whom there is no room would look at all of them
	}
	p.full = bucket.Never
	for of, s := range p.by {
		if s.until <= now {
			delete(p.by, of)
			continue
		}
		p.full = min(p.full, s.until)
	}
	return len(p.by) < mostPauses
}

// pools are those that are paused, so many at most.
func (p *pauses) pools(now time.Duration, most int) (all []PoolView) {
	if time.Duration(p.last.Load()) <= now {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, s := range p.by {
		if len(all) < most && of.limit == nil && of.operation == nil && s.until > now {
			all = append(all, PoolView{Pool: of.key, Left: s.until - now, Quota: s.quota > now})
		}
	}
	return all
}

// raise sets a word to v unless it is higher already.
func raise(word *atomic.Int64, v int64) {
	for {
		old := word.Load()
		if old >= v || word.CompareAndSwap(old, v) {
			return
		}
	}
}

// stopped is how long nobody of the call's operation, or of its pool, may call.
func (p *Permit) stopped(now time.Duration) time.Duration {
	until := time.Duration(p.plan.paused.Load())
	if p.pool != "" {
		until = max(until, p.u.pauses.in(now, held{key: p.pool}).until)
	}
	return max(0, until-now)
}

// askPause waits for the end of such a pause, or refuses. Turns come again after it:
// those that come before its end would all be used at its end.
func (p *Permit) askPause(now, wait, patience time.Duration) Decision {
	if wait <= patience {
		p.limits.Drop(now)
		return Decision{Allowed: true, RetryAfter: wait}
	}
	reason := Paused
	if p.spent(now).quota > now {
		reason = QuotaExhausted
	}
	p.undo(now)
	p.why = -1
	return Decision{Reason: reason, RetryAfter: wait}
}

// spent is the pause of the pool or the operation, whichever ends later.
func (p *Permit) spent(now time.Duration) stop {
	of := p.u.pauses.in(now, held{operation: p.plan.paused})
	if p.pool == "" {
		return of
	}
	if pool := p.u.pauses.in(now, held{key: p.pool}); pool.until >= of.until {
		return pool
	}
	return of
}

// pauses reports whether an answer asks for a pause. A quota that does not say when it
// resets is asked again now and then; but not even that for what is not of a pool, of
// which nobody knows what else the quota is for, nor where the upstream wants no more
// attempts: what is missing then is no time but money.
func (p *Permit) pauses(o *outcome.Outcome) bool {
	if o.Class != outcome.Throttled {
		return false
	}
	return o.Hint.Said && o.Hint.After > 0 || o.Hint.Quota && p.pool != "" && !o.Hint.Said && o.Hint.Advice != outcome.NotAgain
}

// pause stops everyone whom the hint concerns. That are all callers of the call's pool
// if it has one, and of those of its limits that are kept by the pool; else all callers
// of the limits that the call was charged to, under its keys. Limits that it cost
// nothing are none of its business.
func (p *Permit) pause(u *Upstream, now time.Duration, o *outcome.Outcome) {
	longest, asked := p.plan.live.policy.MaxPause, o.Hint.After
	if !o.Hint.Said {
		asked = longest
	} else if o.Hint.Quota {
		longest = quotaPause
	}
	until := later(now, min(asked, longest))
	s := stop{until: until}
	if o.Hint.Quota {
		s.quota, s.known = until, o.Hint.Said
	}
	e := PauseEvent{Subject: subject(u, p.plan, p.id, p.keys), Hint: o.Hint.After, For: until - now, Code: o.Code}
	charged := p.pauseLimits(u, now, s, e)
	if p.pool != "" {
		u.pauses.add(now, held{key: p.pool}, s)
	} else if !charged { // then nobody may call the operation
		raise(p.plan.paused, int64(until))
		u.note(now, held{operation: p.plan.paused}, s)
	}
	if !charged {
		tell(u.options.Events.Paused, e)
	}
}

// pauseLimits pauses the limits that a hint concerns, and reports whether there are any.
func (p *Permit) pauseLimits(u *Upstream, now time.Duration, s stop, e PauseEvent) (any bool) {
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		if c.Cost == 0 || p.pool != "" && c.Key != p.pool {
			continue
		}
		any = true
		p.limits.Pause(now, i, s.until)
		u.note(now, held{limit: c.Registry, key: c.Key}, s)
		e.Limit, e.Key = c.Registry.Limit().Name, c.Key
		tell(u.options.Events.Paused, e)
	}
	return any
}

// note remembers of a pause that is kept elsewhere that it is for a quota.
func (u *Upstream) note(now time.Duration, of held, s stop) {
	if s.quota > 0 {
		u.pauses.add(now, of, s)
	}
}
