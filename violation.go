package weir

import (
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// violated tells of a throttle although limits had allowed the attempt.
func (p *Permit) violated(now time.Duration, o *outcome.Outcome) {
	u := p.u
	tell(u.options.Events.Violated, Violation{
		Subject: p.subject(u, p.plan), Code: o.Code, Levels: p.levels(now), InFlight: u.counts.underWay(), Last: u.counts.ago(now),
	})
}
