package limit

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// Tell gives every charge's limit that is told its rate the one that the upstream says
// in an answer. Each that changed is passed to changed.
func (p *Permit) Tell(now time.Duration, levels []outcome.Level, changed func(c Charge, perSecond float64)) {
	for i := range p.n {
		e := p.at(i)
		l := e.Registry.Limit()
		if l.Told == "" || e.limiter == nil {
			continue
		}
		for k := range levels {
			if rate, ok := toldRate(&levels[k]); ok && levels[k].Name == l.Told {
				if e.Registry.tell(now, e.Key, rate, gone(&levels[k])) && changed != nil {
					changed(e.Charge, rate.PerSecond())
				}
			}
		}
	}
}

// tell changes the rate of a key to what the upstream allows, and reports whether that is
// another than it was.
func (r *Registry) tell(now time.Duration, key string, rate bucket.Rate, gone int64) bool {
	m := r.Get(now, key)
	if at := m.Look(now); at.Full == rate.Full() && near(at.PerSecond, rate.PerSecond()) {
		return false
	}
	next := *r.limit.Load()
	next.Rate = rate
	return m.Set(now, next) || r.renew(now, key, m, next, gone)
}

// renew puts a new limiter in the place of one whose rate cannot be changed so far. It
// begins with what the upstream says is left.
func (r *Registry) renew(now time.Duration, key string, old *Limiter, l Limit, gone int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byKey.Load(key); key == "" && r.single.Load() != old || key != "" && (!ok || known != any(old)) {
		return false
	}
	_, owed := old.close(now)
	line := l.line(now)
	m := newLimiter(l, &line, nil)
	m.assume(now, old, owed+gone)
	if key == "" {
		r.single.Store(m)
	} else {
		r.byKey.Store(key, m)
	}
	return true
}

func near(a, b float64) bool { return a > b*0.99 && a < b*1.01 }

// toldRate is a rate that stays within a level that an upstream reports. What counts
// as a bucket of the whole amount there is one of a quarter here: a burst of everything
// would be within the limit, too, but is refused by upstreams that count by the second.
func toldRate(said *outcome.Level) (bucket.Rate, bool) {
	if said.Limit <= 0 || said.Limit > mostRolling {
		return bucket.Rate{}, false
	}
	r := bucket.Rate{Amount: said.Limit, Per: toldWindow(said), Burst: max(1, said.Limit/4)}
	return r, r.Validate() == nil
}

// toldWindow is what the amount is counted over, if the upstream does not say: a
// minute, or a day where what is gone would take so long to come back. Reset is the
// time until everything is there again (OpenAI and Anthropic, November 2026).
func toldWindow(said *outcome.Level) time.Duration {
	const day = 24 * time.Hour
	gone := said.Limit - said.Remaining
	if said.Window > 0 || said.Remaining < 0 || gone <= 0 || said.Reset <= time.Minute {
		return cmp.Or(said.Window, time.Minute)
	}
	if whole := said.Reset.Seconds() / float64(gone) * float64(said.Limit); whole > time.Hour.Seconds() {
		return day
	}
	return time.Minute
}

// gone is how much of the amount the upstream has counted already; all of it if it does
// not say.
func gone(said *outcome.Level) int64 {
	if said.Remaining < 0 {
		return said.Limit
	}
	return max(0, said.Limit-said.Remaining)
}
