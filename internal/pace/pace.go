// Package pace is the least rate of a body, in time that its bytes earn: whoever sends at the
// rate or faster always has some left.
package pace

import "time"

// A Pace is how a body has come so far. The zero Pace bounds nothing.
type Pace struct {
	rate int64
	most time.Duration
	left time.Duration
}

// New is the pace of a body of which so many bytes a second must come, on the average of
// a time. What came sooner earns patience for later, up to most. A rate or a time of 0 or less bounds
// nothing.
func New(rate int64, over, most time.Duration) Pace {
	if rate <= 0 || over <= 0 {
		return Pace{}
	}
	return Pace{rate, max(over, most), over}
}

// Bounds reports whether the body has a least rate at all.
func (p *Pace) Bounds() bool { return p.rate > 0 }

// Left is how long the next byte is waited for, at least 1.
func (p *Pace) Left() time.Duration { return max(1, p.left) }

// Came takes note of bytes and of how long they were waited for.
func (p *Pace) Came(n int, waited time.Duration) {
	if p.rate > 0 {
		p.left = min(p.most, p.left-waited+time.Duration(float64(n)/float64(p.rate)*float64(time.Second)))
	}
}
