package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// cold describes a store that does not know the previous usage of a group's limits. Instants are microseconds
// of the store's clock. Such a store grants no units of rates before all parts that processes may hold have
// expired. It grants less than the limit until the units that may have been spent from them would have accrued
// again.
type cold struct {
	since int64 // since when the store knows; 0 if it always has
	until int64 // until when all usage was unknown, to the knowledge of this process
	crowd int64 // the largest number of live processes since, or just before as known to this process
}

// hears handles a response. alive is the number of processes in the response before.
func (c *cold) hears(a *Standing, alive int64) {
	now, over := a.Now.UnixMicro(), a.Since+UnknownFor.Microseconds()
	// The store has another memory than the one that the process knew.
	if a.Since != c.since {
		*c = cold{since: a.Since, until: a.Since, crowd: alive}
		if now >= over {
			c.until = over // perhaps another process has claimed a part before; this process cannot know
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

// warm returns when the store can grant all of a limit. It is the zero Time if the store knows the usage of the
// limit.
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

// fills returns how long it takes until n units have accrued.
func fills(n, perSecond float64) time.Duration {
	return time.Duration(min(n/perSecond*float64(time.Second), float64(bucket.Never/4)))
}

// Warm returns when a store can grant all of a limit, if it lost its memory of the group's limits at since. outage is
// Options.Outage of the processes.
func Warm(l *limit.Limit, since time.Time, outage time.Duration) time.Time {
	at := since.UnixMicro()
	return (&cold{since: at, until: at + ReservesUnknown(outage).Microseconds()}).warm(l)
}

// ReservesUnknown returns how long a store that lost its memory reserves the parts of processes whose Options.Outage
// is outage.
func ReservesUnknown(outage time.Duration) time.Duration { return max(UnknownFor, outage) }

// warms adjusts the Wait and Reset of a grant of a store that does not know which processes hold parts. Units
// are available at the latest when those parts have expired. A process that holds a part claims it with its
// next heartbeat, so its grants stay as they are.
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
	to.Reset = max(to.Reset, left+fills(float64(s.burst()), s.limit.PerSecond()))
}
