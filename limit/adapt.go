package limit

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// The rules by which a rate learns are those of package adaptive: a cut on a throttle, growth
// while calls succeed.

// learn tells the limiter's rate how an attempt of n units ended, if it is one
// that learns, and says which rate is in force if that changed.
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

// adapt lets the bucket run at a rate that was learned. The burst of a limit that nobody knows follows the rate.
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

// burstTime is how much of an unknown limit may go at one instant: timers are late by as much on a busy machine.
const burstTime = 100 * time.Millisecond

// Unknown is a limit on requests whose rate nobody knows: calls start at 1 a second, and learn from throttles what the upstream
// allows. It never exceeds a million a second.
func Unknown(name string) Limit {
	return Limit{Name: name, Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second, Burst: 1}, Adaptive: adaptive.Config{On: true, Unknown: true}}
}

// Soonest is how soon a wait for a charge's limit may be over that takes d at the present rate. A rate that learns may grow: it is
// taken to double each second, up to its highest.
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

// learned is the rate in force and the highest there can be.
func (p *places) learned(l *Limit) (rate, most float64) {
	c := l.Adaptive.WithDefaults(l.PerSecond())
	if k := p.learner(); k != nil {
		return k.Rate(), c.Max
	}
	return c.Start, c.Max
}

// Learn tells every charge's rate that learns how the attempt ended which was
// sent at sent. Each rate that changed is passed to changed.
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
