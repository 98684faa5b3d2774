package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
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
// those of its successor, and both together twice as fast. Limits of other calls are not looked at: a call that
// is charged anew keeps its place in the order of arrival.
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

// An account is what an attempt is charged to, and what its limits said. It holds nothing until
// take has said yes; from then on it must be settled, or handed back. The zero account has no
// charges: take lets it go at once.
type account struct {
	charged
	limits  limit.Charges // what it holds of them
	guessed bool          // what it costs is a guess
	why     int32         // the limit that made it wait or said no, or -1
	lack    limit.Lack
	told    bool          // the limits have heard what the upstream says of them
	paused  time.Duration // until when everyone is paused that its answer concerns; 0: nobody
}

// starts tells the limits that the attempt is made.
func (a *account) starts() {
	if a.by.told {
		a.limits.Sent()
	}
}

// charge charges a call to the limits that it goes by, and takes nothing yet.
func (a *account) charge(now time.Duration, c *Call) {
	for i := range a.by.limits {
		l := &a.by.limits[i]
		if l.only != nil && !l.picks(c.Keys) {
			continue
		}
		charge := limit.Charge{Registry: l.registry}
		if l.scope != "" {
			if l.like >= 0 && a.limits.Len() == i { // each limit before this one has its charge
				charge.Key = a.limits.Charge(l.like).Key
			} else {
				charge.Key = boundedKey(c.Keys[l.scope])
			}
		}
		charge.Cost = l.cost(now, charge.Key, c)
		a.limits.AddAnother(charge) // each limit has a registry of its own
	}
}

// take takes the charges. A guess that has become too much while it waited is cut down.
func (a *account) take(now time.Duration) limit.Verdict {
	v := a.limits.Take(now)
	if !v.OK && v.Wait == bucket.Never && a.guessed && a.limits.Fit(now) {
		return a.limits.Take(now)
	}
	return v
}

// handBack gives back what the limits gave, and lets those have it who wait.
func (a *account) handBack(now time.Duration) {
	if a.limits.Drop(now) {
		a.kick(now)
	}
}

// kick has those ask again who wait for what the call was charged to: some of it came back,
// or its rate is another.
func (a *account) kick(now time.Duration) {
	lines := a.by.live.u.lines
	if lines.Empty() {
		return
	}
	for i := range a.limits.Len() {
		c := a.limits.Charge(i)
		lines.KickOne(now, lineOf(now, c))
	}
}

// shared is the first charge that has to do with the store; the first of all if none has.
func (a *account) shared() int32 {
	for i := range a.limits.Len() {
		if a.limits.Charge(i).Registry.Shared() {
			return int32(i)
		}
	}
	return 0
}

// cause is the charge to the limit that made the attempt wait, or said no; the zero Charge if none did.
func (a *account) cause() limit.Charge {
	if a.why < 0 {
		return limit.Charge{}
	}
	return a.limits.Charge(int(a.why))
}

// wants is what the limit that said no wanted of the store.
func (a *account) wants(now time.Duration) limit.Want {
	w := a.limits.Lacks(now, int(a.why))
	if a.lack != limit.LacksNothing {
		w.Lack = a.lack
	}
	return w
}

// levels is what all limits look like that the call is charged to.
func (a *account) levels(now time.Duration) []LimitLevel {
	all := make([]LimitLevel, a.limits.Len())
	for i := range all {
		c := a.limits.Charge(i)
		level := a.limits.Look(now, i)
		all[i] = LimitLevel{Rule: c.Registry.Limit().InForce(level), Key: c.Key, Cost: c.Cost, Level: level}
	}
	return all
}
