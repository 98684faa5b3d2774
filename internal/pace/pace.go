// Package pace enforces a minimum rate of a body. Each byte earns time, so a sender at that rate or faster never runs out of
// time.
package pace

import "time"

// A Pace is the progress of a body. The zero Pace has no minimum rate.
type Pace struct {
	rate int64
	most time.Duration
	left time.Duration
}

// New returns the pace of a body with a minimum rate in bytes per second, averaged over a time. Faster bytes earn time for
// later ones, up to most. A rate or time of 0 or less means no minimum.
func New(rate int64, over, most time.Duration) Pace {
	if rate <= 0 || over <= 0 {
		return Pace{}
	}
	return Pace{rate, max(over, most), over}
}

// Bounds reports whether the body has a minimum rate.
func (p *Pace) Bounds() bool { return p.rate > 0 }

// Left returns the time to wait for the next byte, at least 1 ns.
func (p *Pace) Left() time.Duration { return max(1, p.left) }

// Came records received bytes and the time waited for them.
func (p *Pace) Came(n int, waited time.Duration) {
	if p.rate > 0 {
		p.left = min(p.most, p.left-waited+time.Duration(float64(n)/float64(p.rate)*float64(time.Second)))
	}
}
