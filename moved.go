package weir

import (
	"cmp"
	"slices"
	"time"
)

// charged says which limits a call is charged to.
type charged struct {
	by   *plan             // whose limits those are: that in force when it asked for them
	op   string            // Call.Operation
	keys map[string]string // Call.Keys
}

// moved reports whether the limits in force for the call are others than those that it is charged to: a reload
// took one away, added one, or gave one another name, scope or unit, or it is shared where it was not. What comes new
// begins empty, as nobody knows what was used. Whoever went on to wait for what was replaced would go beside
// those of its successor, and both together twice as fast. Limits of other calls are not looked at: who is charged
// anew goes to the end of its line.
func (c *charged) moved(v *live) bool { return v != c.by.live && c.differ(v) }

// differ is moved for another policy than that by which the call is charged.
func (c *charged) differ(v *live) bool {
	now := cmp.Or(v.plans[c.op], v.other)
	return !c.by.within(now, c.keys) || !now.within(c.by, c.keys)
}

// within reports whether a call with these keys is charged by another plan to all that it is charged to by p.
func (p *plan) within(other *plan, keys map[string]string) bool {
	for i := range p.limits {
		r := p.limits[i].registry
		if p.limits[i].picks(keys) && !slices.ContainsFunc(other.limits, func(l counted) bool { return l.registry == r && l.picks(keys) }) {
			return false
		}
	}
	return true
}

// moves charges a call that waits to the limits in force, and asks them.
func (w *walk) moves() step {
	w.handBack(w.now)
	w.limits.Reset()
	w.why = -1
	w.by = w.u.live.Load().plan(w.call)
	w.charge(w.now, w.call)
	return w.turn()
}

// charge charges a call to the limits that it goes by, and takes nothing yet.
func (a *account) charge(now time.Duration, c *Call) {
	for i := range a.by.limits {
		if l := &a.by.limits[i]; l.only == nil || l.picks(c.Keys) {
			a.limits.Add(l.charge(now, c))
		}
	}
}
