package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// cold is what is known of a store that does not know what was used of a group's limits.
// Instants are microseconds of the store's clock.
// Such a store grants nothing of rates before all parts that may be held are over, and less than all until what
// may have been used of them would have come again.
type cold struct {
	since int64 // since when it knows; 0 if it always has
	until int64 // up to when all was unknown, as far as this process has heard
	crowd int64 // the most processes that the store heard since, or that this process knew of just before
}

// hears takes what an answer says. alive is how many processes there were as of the answer before.
func (c *cold) hears(a *Standing, alive int64) {
	now, over := a.Now.UnixMicro(), a.Since+UnknownFor.Microseconds()
	// Another memory than the one that the process knew.
	if a.Since != c.since {
		*c = cold{since: a.Since, until: a.Since, crowd: alive}
		if now >= over {
			c.until = over // or somebody has shown a part before: nobody knows
		}
	}
	c.crowd = max(c.crowd, a.Alive)
	if a.Unknown >= Whole {
		c.until = a.Known
	}
	c.until = max(a.Since, c.until)
	if a.Unknown < Whole {
		c.until = min(c.until, now)
	}
}

// warm is when the store can grant all of a limit, and the zero Time if it knows what was
// used of it.
func (c *cold) warm(l *limit.Limit) time.Time {
	if c.since == 0 {
		return time.Time{}
	}
	since, until := time.UnixMicro(c.since), time.UnixMicro(c.until)
	switch l.Shape {
	case limit.Calendar:
		return l.Windows(since).End
	case limit.Rolling:
		return until.Add(l.Per)
	}
	return until.Add(fills(float64(l.Full()), l.PerSecond()))
}

// fills is how long it takes until so many units have come.
func fills(n, perSecond float64) time.Duration {
	return time.Duration(min(n/perSecond*float64(time.Second), float64(bucket.Never/4)))
}

// Warm returns when a store that lost its memory of a group's limits at an instant can grant all of a limit. outage is
// Options.Outage of the processes.
func Warm(l *limit.Limit, since time.Time, outage time.Duration) time.Time {
	at := since.UnixMicro()
	return (&cold{since: at, until: at + ReservesUnknown(outage).Microseconds()}).warm(l)
}

// ReservesUnknown returns how long a store that lost its memory reserves the parts that processes may hold, if their
// Options.Outage is outage.
func ReservesUnknown(outage time.Duration) time.Duration { return max(UnknownFor, outage) }

// warms makes the answer to a claim say when there will be something, as far as that is known, where
// the store does not know who holds parts: at the latest when they are over. If this
// process holds one, it shows it with its next beat.
func (g *Group) warms(now time.Duration, s *spec, cost int64, to *Grant) {
	if !to.Cold || s.rule.Shape == limit.Calendar {
		return
	}
	g.own.Lock()
	defer g.own.Unlock()
	out := &g.beating.out
	if out.Unknown < Whole || g.standing.part > 0 {
		return
	}
	left := max(0, time.UnixMicro(out.Known).Sub(g.fleet.storeTime(now)))
	if s.rule.Shape == limit.Rolling {
		_, stay := s.stay()
		to.Wait, to.Reset = max(to.Wait, left+stay), max(to.Reset, left+stay)
		return
	}
	if to.Wait != bucket.Never {
		to.Wait = max(to.Wait, left+fills(float64(max(1, cost)), s.limit.PerSecond()))
	}
	to.Reset = max(to.Reset, left+fills(float64(s.most()), s.limit.PerSecond()))
}
