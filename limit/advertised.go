package limit

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// Sent notes that the call is on its way, for the limits that are told what the upstream
// allows. It must be followed by one Tell.
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

// Tell hears what the upstream says of its limits in the outcome of a call that was sent at
// sent; unless it is undone, they counted the call. Every charge's limit that is told its
// rate gets the one that is said there, each that changed is passed to changed, and what
// others are seen to take of it is charged here: see advertised. It reports whether this was the first answer for a limit: see
// Unheard.
//
// A process knows only what it was told itself: limits of this kind are not shared, and
// each process of a fleet that uses the same key finds the others by what is left.
func (p *Charges) Tell(now, sent time.Duration, o *outcome.Outcome, changed func(c Charge, perSecond float64)) (first bool) {
	for i := range p.n {
		if e := p.at(i); e.limiter != nil && (e.sent || e.Registry.Limit().Advertised != "") {
			first = e.tell(now, sent, o, changed) || first
		}
	}
	return first
}

// tell hears an answer for one charge: what others use, another rate, and how much there is at most.
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

// raised is how many times its rate a provisional limit allows while the upstream does not report it.
const raised = 100

// unreported hears an answer without a report of a provisional limit.
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

// A rateChange is what an answer without a report does to the rate of a provisional limit.
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

// obey charges what is owed; nor is there more than the upstream had at the latest. What goes beyond
// a full burst is not charged: an answer may be wrong, and the next one says it again.
func (e *entry) obey(now time.Duration, said *outcome.Level, full, owed, latest int64, hurry bool) {
	m := e.Registry.Get(now, e.Key)
	if hurry && said.Remaining == 0 {
		m.Pause(now, now+min(said.Reset, mostHeld))
	}
	if owed = max(owed, m.Look(now).Left-latest); owed > 0 {
		m.Owe(now, min(owed, full))
	}
}

// named is the level of that name, nil if there is none.
func named(levels []outcome.Level, name string) *outcome.Level {
	for i := range levels {
		if levels[i].Name == name && name != "" {
			return &levels[i]
		}
	}
	return nil
}

// Unheard reports whether the rate of a charge's limit is only the configuration's: the upstream has not answered yet, and may
// report a limit that is far higher.
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

// An advertised is what the upstream should have left of its limit if nobody else used it: what
// it said last, and what has come since, without what was used here. What it says is
// less than that by, somebody else has used, or it counts otherwise than is done here.
//
// An answer says what was left when its call was counted, which may be long ago, so what
// came since it was sent counts for the upstream; calls under way it may have counted
// already. Both make it find less of what others use and never more. It is
// never used to give anything back.
type advertised struct {
	mu     sync.Mutex
	limit  int64         // what the upstream has when it is full; 0 if it has said nothing
	left   float64       // should be left
	at     time.Duration // when
	found  time.Duration // when others were last found to use it, or it was first told
	flying int64         // taken by calls without an answer
	day    bool          // it is an amount per day
	heard  bool          // an answer has come: the upstream reports its limit, or does not

	reported bool          // the upstream has reported its limit
	lowered  time.Duration // until when a throttle keeps the rate of a provisional limit from being raised
}

// advertised is made when the first answer is heard, or the first call is sent.
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

// begins reports whether an answer is the first, if it is one, and how many units other calls under way have taken.
// Until then the limit was the configuration's guess, so what is left of it says nothing.
func (b *advertised) begins(e *entry, answer bool) (flying int64, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if flying = b.flying; e.sent {
		flying -= e.Cost
	}
	return flying, answer && !b.heard
}

// hear takes in an answer. It returns what others have used of what is scarce, what the
// upstream has left at the most, below 0 if it does not say, and whether the amount is one
// per day.
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

// scarce is how much of what others have used is charged here. As long as the upstream has
// a whole burst left nothing is: what there is has to be shared only as it runs out. At
// once no more is than could have come since the last answer.
func scarce(others, came, remaining, full float64) int64 {
	if remaining >= full {
		return 0
	}
	return int64(max(0, min(others, came)) * (full - remaining) / full)
}

// tell changes the rate of a charge's key to what the upstream allows, and reports whether
// that is another than it was. A limiter that has to begin anew begins with so much gone.
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
		return false // it has been changed, or is another's, too; the next answer says it again
	}
	next.Rate = rate
	anew := first || rate.Per >= day && at.PerSecond*day.Seconds() > 2*float64(rate.Amount) // what is left of a minute says nothing of the day
	return !anew && m.setLimit(now, next) || r.renew(now, e.Key, m, next, gone)
}

// has reports whether a limiter is that of the key alone. One that keys share for want of room is not
// changed by what one of them hears.
func (r *Registry) has(key string, m *Limiter) bool {
	if key == "" {
		return r.single.Load() == m
	}
	return r.keys.get(key) == m
}

// renew puts a new limiter in the place of one whose rate cannot be changed so far. It
// begins with what the upstream says is left.
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

// InForce is the limit as it holds at a level: if it is told its rate, at what it was told.
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

// near is within a hundredth: rates are computed from rounded answers.
func near(a, b float64) bool { return a > b*0.99 && a < b*1.01 }

const day = 24 * time.Hour

// advertisedRate is a rate that stays within a level that an upstream reports. What counts
// as a bucket of the whole amount there is one of a quarter here: a burst of everything
// would be within the limit, too, but is refused by upstreams that count by the second.
// Of a day's amount all may go at once.
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

// perDay reports whether the amount is counted over a day, if the upstream does not say:
// over a minute, unless what is gone takes so long to come back. Reset is the time until
// everything is there again (OpenAI and Anthropic, November 2026); elsewhere it is until
// a new minute begins. It is rounded, to seconds by some. Little that is gone shows
// neither: then it is what it was taken for.
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

// gone is how much of the amount the upstream has counted already; all of it if it does
// not say.
func gone(said *outcome.Level) int64 {
	if said.Remaining < 0 {
		return said.Limit
	}
	return max(0, said.Limit-said.Remaining)
}
