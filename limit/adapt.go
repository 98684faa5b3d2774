package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
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
		p.pace(now, rate)
	}
	return rate, changed
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
