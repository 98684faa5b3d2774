package limit

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// The rules of adaptive rates are in package adaptive: a throttle cuts the rate, and it grows while calls succeed.

// learn reports the outcome of an attempt of n units to the limiter's adaptive rate. It returns the rate in force,
// and whether it has changed.
func (p *places) learn(now, sent time.Duration, l *Limit, class outcome.Class, n int64) (rate float64, changed bool) {
	k := p.learner()
	if k == nil {
		k = adaptive.NewController(now, l.Adaptive, l.PerSecond())
		if !p.grow().rate.CompareAndSwap(nil, k) {
			k = p.learner()
		}
	}
	if rate, changed = k.Report(now, sent, class, n); changed {
		p.adapt(now, rate, l)
	}
	return rate, changed
}

// adapt sets the bucket to a learned rate. The burst of an unknown limit follows the rate.
func (p *places) adapt(now time.Duration, perSecond float64, l *Limit) {
	if !l.Adaptive.Unknown {
		p.pace(now, perSecond)
		return
	}
	p.redraw(func(old *bucket.Line) *bucket.Line {
		r := l.Rate
		r.Burst = max(l.Full(), int64(perSecond*burstTime.Seconds()))
		next, ok := old.Change(now, r)
		if !ok { // cannot be: only the burst differs
			next = *old
		}
		return new(next.Pace(now, perSecond))
	})
}

// burstTime determines the burst of an unknown limit, as the units of that time. Timers on a busy machine are that
// late.
const burstTime = 100 * time.Millisecond

// Unknown returns a limit on requests whose rate is not known. It starts at 1 per second and learns from throttles
// what the upstream allows. It never exceeds a million per second.
func Unknown(name string) Limit {
	return Limit{Name: name, Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second, Burst: 1}, Adaptive: adaptive.Config{On: true, Unknown: true}}
}

// Soonest returns the shortest possible duration of a wait for a charge's limit that takes d at the present rate. It
// assumes that an adaptive rate doubles each second, up to its maximum.
func (p *Charges) Soonest(i int, d time.Duration) time.Duration {
	e := p.at(i)
	if e.limiter == nil || d <= 0 || d == bucket.Never {
		return d
	}
	l := e.Registry.Limit()
	if !l.Adaptive.On {
		return d
	}
	rate, most := e.limiter.bucket.learned(l)
	if rate >= most {
		return d
	}
	// In t seconds the rate gives as much as the present one in (2^t-1)/ln 2.
	doubling := math.Log2(1 + d.Seconds()*math.Ln2)
	return time.Duration(min(d.Seconds(), max(doubling, d.Seconds()*rate/most)) * float64(time.Second))
}

// learned returns the rate in force and its maximum.
func (p *places) learned(l *Limit) (rate, most float64) {
	c := l.Adaptive.WithDefaults(l.PerSecond())
	if k := p.learner(); k != nil {
		return k.Rate(), c.Max
	}
	return c.Start, c.Max
}

// Learn reports the outcome of an attempt that was sent at sent to the adaptive rates of all charges. It calls
// changed, if not nil, with each new rate.
func (p *Charges) Learn(now, sent time.Duration, class outcome.Class, changed func(c Charge, rate float64)) {
	for i := range p.n {
		e := p.at(i)
		l := e.Registry.Limit()
		if !l.Adaptive.On || e.limiter == nil || e.Cost == 0 {
			continue
		}
		if rate, ok := e.limiter.bucket.learn(now, sent, l, class, e.Cost); ok && changed != nil {
			changed(e.Charge, rate)
		}
	}
}
