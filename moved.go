package weir

import (
	"slices"
	"time"
)

// elsewhere, as what a decision asks to wait for, means that other limits are in force: see moves.
const elsewhere time.Duration = -3

// moved reports whether other limits are in force than those that the call is charged to: a reload
// took one away, added one, or gave one another name, scope or unit, or it is shared where it was not. What comes new
// begins empty, as nobody knows what was used. Whoever went on to wait for what was replaced would go beside
// those of its successor, and both together twice as fast.
func (p *Permit) moved() bool {
	v := p.u.live.Load()
	return v != p.by.live && !slices.Equal(v.registries, p.by.live.registries)
}

// moves charges a call that waits to the limits in force, and asks them.
func (p *Permit) moves(now, patience time.Duration, c *Call) Decision {
	p.limits.Drop(now)
	p.limits.Reset()
	p.why = -1
	p.by = p.u.live.Load().plan(c)
	p.charge(now, c)
	return p.turn(now, patience)
}

// charge charges a call to the limits that it goes by, and takes nothing yet.
func (p *Permit) charge(now time.Duration, c *Call) {
	for i := range p.by.limits {
		if l := &p.by.limits[i]; l.only == nil || l.picks(c) {
			p.limits.Add(l.charge(now, c))
		}
	}
}
