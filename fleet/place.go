package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"time"
)

// A Place is the standing of a process in a group, for status pages and metrics. A part is a fraction of 1 and
// applies to all limits of the group.
type Place struct {
	Group   string
	State   limit.State
	Part    float64       // of all limits of the group, held by this process
	Lasts   time.Duration // how long the store reserves the part if it gets no further heartbeat
	Alive   int           // processes with a recent heartbeat
	Out     float64       // parts of silent processes, which the store does not grant
	Unknown float64       // the portion of Out that no process has claimed since the store lost its data
	Known   time.Duration // how much longer the store withholds Unknown

	cold cold      // for Warm
	at   time.Time // the store's clock, as well as it is known
}

// Warm returns the time until the store can grant all of a limit of the group, because the units used before it
// lost its data count no longer. It is 0 if the store can do so now.
func (p *Place) Warm(l *limit.Limit) time.Duration {
	if warm := p.cold.warm(l); l.Shares() && warm.After(p.at) {
		return warm.Sub(p.at)
	}
	return 0
}

// Places returns the standing of this process in each group, sorted by name. Information about other processes
// is as old as the latest heartbeat response.
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

// place returns the standing of this process. own is held.
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

// state returns the mode as shown in refusals and on status pages.
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
