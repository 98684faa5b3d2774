package limit

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// Sent notes that the call was sent, for limits that the upstream advertises. One Tell must follow.
func (p *Charges) Sent() {
	for i := range p.n {
		e := p.at(i)
		if e.limiter == nil || e.Registry.Limit().Advertised == "" || e.sent {
			continue
		}
		e.sent = true
		b := e.limiter.bucket.advertised()
		b.mu.Lock()
		b.flying += e.Cost
		b.mu.Unlock()
	}
}

// Tell reports the upstream's statement of its limits in the outcome of a call that was sent at sent. Unless the
// outcome is undone, the upstream counted the call. Each charge's limit gets the advertised rate, and changed is
// called with each new one. Usage by other processes, as it shows in the remaining units, is charged here: see
// advertised. Tell reports whether this was the first response for a limit: see Unheard.
//
// Limits of this kind are not shared. Each process of a fleet that uses the same key detects the others by the
// remaining units.
func (p *Charges) Tell(now, sent time.Duration, o *outcome.Outcome, changed func(c Charge, perSecond float64)) (first bool) {
	for i := range p.n {
		if e := p.at(i); e.limiter != nil && (e.sent || e.Registry.Limit().Advertised != "") {
			first = e.tell(now, sent, o, changed) || first
		}
	}
	return first
}

// tell applies a response to one charge: usage by other processes, a new rate, and a maximum of the remaining units.
func (e *entry) tell(now, sent time.Duration, o *outcome.Outcome, changed func(c Charge, perSecond float64)) (first bool) {
	name, counted := e.Registry.Limit().Advertised, !o.Undone
	said := named(o.Hint.Limits, name)
	b := e.limiter.bucket.advertised()
	flying, first := b.begins(e, counted || said != nil)
	owed, latest, day := b.hear(now, sent, e, said, counted)
	if said == nil && e.Registry.Limit().Provisional {
		e.unreported(now, o.Class, changed)
	}
	if said == nil || name == "" {
		return first
	}
	rate, ok := advertisedRate(said, day)
	if !ok {
		return first
	}
	hurry, spent := sooner(said, rate), gone(said)
	if hurry {
		rate = until(said, rate, max(0, now-sent))
		spent = min(spent, rate.Full()) // what is beyond is back when the rest is
	}
	if first {
		spent += flying // which the upstream may not have counted yet
	}
	if e.Registry.tell(now, e, rate, said.Name, spent, first) && changed != nil && !hurry {
		changed(e.Charge, rate.PerSecond())
	}
	if latest >= 0 && said.Remaining < rate.Full() {
		e.obey(now, said, rate.Full(), owed, latest, hurry)
	}
	return first
}

// raised is the factor by which a provisional limit is raised while the upstream does not report it.
const raised = 100

// unreported applies a response that does not report a provisional limit.
func (e *entry) unreported(now time.Duration, c outcome.Class, changed func(c Charge, perSecond float64)) {
	l := e.Registry.Limit()
	rate, gone := bucket.Rate{Amount: l.Amount * raised, Per: l.Per, Burst: l.Full() * raised}, int64(0)
	switch e.limiter.bucket.advertised().unreported(now, c, l.Per) {
	case keepRate:
		return
	case lowerRate:
		rate, gone = l.Rate, l.Full()
	}
	if rate.Validate() == nil && e.Registry.tell(now, e, rate, l.Advertised, gone, true) && changed != nil {
		changed(e.Charge, rate.PerSecond())
	}
}

// A rateChange is the effect of a response without a report on the rate of a provisional limit.
type rateChange uint8

const (
	keepRate rateChange = iota
	raiseRate
	lowerRate // to that of the configuration
)

func (b *advertised) unreported(now time.Duration, c outcome.Class, per time.Duration) rateChange {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.reported:
		return keepRate
	case c == outcome.Throttled:
		b.lowered = now + per
		return lowerRate
	case c == outcome.OK && now >= b.lowered:
		return raiseRate
	}
	return keepRate
}

// obey charges the units in owed, and more if the upstream has fewer units remaining. It charges at most a full
// burst: a response may be wrong, and the next one corrects it.
func (e *entry) obey(now time.Duration, said *outcome.Level, full, owed, latest int64, hurry bool) {
	m := e.Registry.Get(now, e.Key)
	if hurry && said.Remaining == 0 {
		m.Pause(now, now+min(said.Reset, mostHeld))
	}
	if owed = max(owed, m.Look(now).Left-latest); owed > 0 {
		m.Owe(now, min(owed, full))
	}
}

// named returns the level of that name, nil if there is none.
func named(levels []outcome.Level, name string) *outcome.Level {
	for i := range levels {
		if levels[i].Name == name && name != "" {
			return &levels[i]
		}
	}
	return nil
}

// Unheard reports whether the rate of a charge's limit is only the configured one: the upstream has not responded
// yet, and may report a much higher limit.
func (p *Charges) Unheard(i int) bool {
	e := p.at(i)
	if e.limiter == nil || e.Registry.Limit().Advertised == "" {
		return false
	}
	b := e.limiter.bucket.advertised()
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.heard
}

// An advertised tracks what the upstream should have remaining if only this process used the limit: its last report,
// plus the units that came since, minus the usage here. If it reports less, other processes have used the difference,
// or it counts in another way.
//
// A report is as old as its call, so units that came since the call was sent count for the upstream. The upstream may
// also have counted calls in flight. For both reasons, the estimate of other processes' usage is too low and never
// too high. The estimate never returns units.
type advertised struct {
	mu     sync.Mutex
	limit  int64         // what the upstream has when full; 0 if it has not reported
	left   float64       // what should remain
	at     time.Duration // instant of left
	found  time.Duration // when usage by others was last detected, or of the first report
	flying int64         // units of calls without a response
	day    bool          // it is an amount per day
	heard  bool          // a response has come, with or without a report

	reported bool          // the upstream has reported its limit
	lowered  time.Duration // until when a throttle prevents a provisional rate from being raised
}

// advertised returns the state, which is made on the first call or response.
func (p *places) advertised() *advertised {
	x := p.grow()
	b := x.advertised.Load()
	if b == nil {
		b = new(advertised)
		if !x.advertised.CompareAndSwap(nil, b) {
			b = x.advertised.Load()
		}
	}
	return b
}

// begins reports whether a response is the first one, and returns the units of other calls in flight. Before the
// first response the limit was the configured guess, so its remaining units mean nothing.
func (b *advertised) begins(e *entry, answer bool) (flying int64, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if flying = b.flying; e.sent {
		flying -= e.Cost
	}
	return flying, answer && !b.heard
}

// hear applies a response. It returns the units to charge for usage by other processes, the most that the upstream
// can have remaining (negative if it did not report that), and whether the amount is per day.
func (b *advertised) hear(now, sent time.Duration, e *entry, said *outcome.Level, counted bool) (owed, latest int64, day bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.sent {
		e.sent = false
		b.flying -= e.Cost
	}
	b.heard, b.reported = b.heard || counted || said != nil, b.reported || said != nil
	if said == nil {
		if counted {
			b.left -= float64(e.Cost)
		}
		return 0, -1, b.day
	}
	b.day = perDay(said, b.day)
	rate, ok := advertisedRate(said, b.day)
	if !ok {
		return 0, -1, b.day
	}
	speed := rate.PerSecond()
	since := max(0, now-b.at).Seconds()
	b.left = min(float64(said.Limit), b.left+speed*since)
	b.at = max(b.at, now)
	if counted {
		b.left -= float64(e.Cost)
	}
	if said.Remaining < 0 {
		return 0, -1, b.day
	}
	remaining := min(said.Remaining, said.Limit)
	most := min(float64(said.Limit), float64(remaining)+speed*max(0, now-sent).Seconds())
	others := b.left - float64(b.flying) - most
	first := b.limit != said.Limit
	if first || others <= 0 {
		b.limit, b.left = said.Limit, max(b.left, most)
		if first {
			b.left, others = most+float64(b.flying), 0
		}
	} else {
		b.left -= others
	}
	came := speed * max(0, now-b.found).Seconds()
	if first || others > 0 {
		b.found = now
	}
	return scarce(others, came, float64(remaining), float64(rate.Full())), int64(math.Ceil(most)), b.day
}

// scarce returns how much of the usage by other processes is charged here: nothing while the upstream has a complete
// burst remaining, and then more as it runs out. It is at most what could have come since the last response.
func scarce(others, came, remaining, full float64) int64 {
	if remaining >= full {
		return 0
	}
	return int64(max(0, min(others, came)) * (full - remaining) / full)
}

// tell sets the rate of a charge's key to what the upstream allows, and reports whether it changed. If the limiter
// must be replaced, the new one starts with gone units used.
func (r *Registry) tell(now time.Duration, e *entry, rate bucket.Rate, name string, gone int64, first bool) bool {
	m := r.Get(now, e.Key)
	at := m.Look(now)
	if at.Full == rate.Full() && near(at.PerSecond, rate.PerSecond()) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.limit.Load()
	if next.Advertised == "" || next.Advertised != name || !r.has(e.Key, m) {
		return false // the limit has changed, or is shared; the next response reports it again
	}
	next.Rate = rate
	anew := first || rate.Per >= day && at.PerSecond*day.Seconds() > 2*float64(rate.Amount) // the remaining units of a minute tell nothing about the day
	return !anew && m.setLimit(now, next) || r.renew(now, e.Key, m, next, gone)
}

// has reports whether a limiter belongs to the key alone. A limiter shared by keys beyond the maximum is not changed
// by a response to one of them.
func (r *Registry) has(key string, m *Limiter) bool {
	if key == "" {
		return r.single.Load() == m
	}
	return r.keys.get(key) == m
}

// renew replaces a limiter whose rate cannot be changed so far. The new one starts with what the upstream has
// remaining.
func (r *Registry) renew(now time.Duration, key string, old *Limiter, l Limit, gone int64) bool {
	_, owed := old.shape().close(now)
	line := l.line(now)
	m := newLimiter(l, &line, nil)
	m.bucket.grow().advertised.Store(old.bucket.advertised())
	assume(now, m, old, owed+gone)
	if until := old.bucket.line.Load(); until.Paused(now) {
		if at, ok := until.PausedUntil(now); ok {
			m.Pause(now, at)
		}
	}
	if key == "" {
		r.single.Store(m)
	} else {
		r.keys.find(key).limiter.Store(m) // see has
	}
	return true
}

// InForce returns the limit as it applies at a level: an advertised limit has the advertised rate.
func (l Limit) InForce(at Level) Limit {
	if l.Advertised == "" || !(at.PerSecond > 0) {
		return l
	}
	per := time.Minute
	if at.PerSecond*per.Seconds() < 1 {
		per = day
	}
	l.Rate = bucket.Rate{Amount: max(1, int64(math.Round(at.PerSecond*per.Seconds()))), Per: per, Burst: at.Full}
	return l
}

// near reports whether two rates differ by less than 1%. Rates are computed from rounded values.
func near(a, b float64) bool { return a > b*0.99 && a < b*1.01 }

const day = 24 * time.Hour

// advertisedRate returns a rate that stays within an advertised level. The burst is a quarter of the amount: a burst
// of the full amount would be within the limit, but upstreams that count by the second refuse it. A daily amount may
// be used all at one time.
func advertisedRate(said *outcome.Level, perDay bool) (bucket.Rate, bool) {
	if said.Limit <= 0 || said.Limit > mostRolling || said.Window < 0 {
		return bucket.Rate{}, false
	}
	r := bucket.Rate{Amount: said.Limit, Per: cmp.Or(said.Window, time.Minute), Burst: max(1, said.Limit/4)}
	if said.Window == 0 && perDay {
		r.Per = day
	}
	if r.Per >= day {
		r.Burst = said.Limit
	}
	return r, r.Validate() == nil
}

// perDay guesses whether the amount is per day, if the upstream does not report the window. It assumes a minute
// unless the used units take too long to return. Reset is the time until all units are back (OpenAI and Anthropic,
// November 2026), or elsewhere until the next minute. It may be rounded to seconds. If little is used, the previous
// guess stays.
func perDay(said *outcome.Level, before bool) bool {
	gone := said.Limit - said.Remaining
	if said.Window > 0 || said.Remaining < 0 || gone <= 0 || said.Reset <= 0 {
		return before
	}
	whole := func(d time.Duration) float64 { return d.Seconds() / float64(gone) * float64(said.Limit) }
	switch {
	case said.Reset > time.Minute+time.Second && whole(said.Reset-time.Second) > time.Hour.Seconds():
		return true
	case whole(said.Reset+time.Second) <= time.Hour.Seconds():
		return false
	}
	return before
}

// gone returns how much of the amount the upstream has counted as used, and the full amount if it did not report
// that.
func gone(said *outcome.Level) int64 {
	if said.Remaining < 0 {
		return said.Limit
	}
	return max(0, said.Limit-said.Remaining)
}
