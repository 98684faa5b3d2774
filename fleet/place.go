package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"time"
)

// A Place is how a process stands in a group, for status pages and metrics. Parts are shares of 1, of all limits of the group
// alike.
type Place struct {
	Group   string
	State   limit.State
	Part    float64       // of all limits of the group, that this process holds
	Lasts   time.Duration // how long the store keeps the part, if it is not heard again
	Alive   int           // processes that the store heard of late
	Out     float64       // parts of those that are silent: the store grants so much less
	Unknown float64       // of these, what nobody has shown since the store was emptied
	Known   time.Duration // how much longer that is held back

	cold cold      // what Warm goes by
	at   time.Time // the store's clock, as far as it is known
}

// Warm is in how long the store can grant all of a limit of the group, as it knows what was used of
// it then; 0 if it does.
func (p *Place) Warm(l *limit.Limit) time.Duration {
	if warm := p.cold.warm(l); l.Shares() && warm.After(p.at) {
		return warm.Sub(p.at)
	}
	return 0
}

// Places is how this process stands in each group, in the order of their names: as of now, though of what others do it is as
// old as the latest answer to a beat.
func (f *Fleet) Places() []Place {
	now := f.clock.Now()
	var all []Place
	for _, g := range f.all() {
		g.own.Lock()
		all = append(all, g.place(now))
		g.own.Unlock()
	}
	return all
}

// place is how this process stands; own is held.
func (g *Group) place(now time.Duration) Place {
	s, out := &g.standing, &g.beating.out
	p := Place{
		Group: g.name, State: s.state(now), Alive: int(max(1, g.beating.alive)),
		Part: float64(s.part) / Whole, Out: float64(out.Out) / Whole, Unknown: float64(out.Unknown) / Whole,
		cold: g.beating.cold, at: g.fleet.storeTime(now),
	}
	if s.met {
		p.Lasts = max(0, s.over()-now)
	}
	if out.Unknown > 0 {
		p.Known = max(0, time.Duration(out.Known)*time.Microsecond-time.Duration(g.fleet.storeTime(now).UnixNano()))
	}
	return p
}

// state is the mode in the words of refusals and status pages.
func (s *standing) state(now time.Duration) limit.State {
	switch {
	case !s.met:
		return limit.StateNew
	case now <= s.from():
		return limit.StateHeard
	case s.lapsed(now):
		return limit.StateOut
	case s.solo != 0:
		return limit.StateSlow
	}
	return limit.StateCutOff
}
