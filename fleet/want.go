package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Want returns which shortage of a call the store's state causes, and for how long. Refusals report it besides
// the limit's own wait. Lack is LacksNothing if the store is available.
func (p *lease) Want(now time.Duration, cost int64) limit.Want {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	w := limit.Want{State: g.standing.state(now)}
	// There are more than mostPassing such keys: the store is not asked for this one. There may be room after
	// passingKept.
	if p.crowdedOut {
		w.Lack, w.Wait, w.Keys = limit.LacksStore, passingKept, true
		return w
	}
	if u.mode.uses() {
		a := p.allows(now, u, 0, cost)
		w.Lack, w.Part, w.Wait = a.lack, float64(u.part)/Whole, a.wait
		if a.lack == limit.LacksNothing {
			w.Lack = limit.LacksTurn
		}
	} else if at := p.sight(); u.mode != asking && (!at.known || g.failing.Load()) {
		w.Lack = limit.LacksStore
	} else if at.known && at.grant.Cold && !g.warm.Load() {
		w.Lack, w.Wait = limit.LacksMemory, max(0, at.grant.Wait-(now-at.at))
	} else if s := p.spec(); u.mode == asking && s.rule.Shape != limit.Calendar {
		if part := g.beating.reservedWithin(now, s.recovery()); part > 0 {
			w.Lack, w.Part = limit.LacksReserved, float64(part)/Whole
		}
	}
	if w.Wait == bucket.Never || w.Lack == limit.LacksStore {
		w.Wait = g.again(now)
	}
	return w
}

// muchReserved is the part, in millionths, from which the reservation for silent processes is named as the
// cause of a refusal.
const muchReserved = Whole / 10

// reserved returns the part of each limit that the store reserves for known processes that are silent.
func (b *beating) reserved() int64 { return max(0, b.out.Out-b.out.Unknown) }

// reservedWithin returns the large part of each limit that is reserved for silent processes, or was at most recent ago; 0 if none.
// When they respond again, the store counts their possible use as used, and the limit has to recover from it.
func (b *beating) reservedWithin(now, recent time.Duration) int64 {
	if b.reserved() >= muchReserved || now < b.muchAt+recent {
		return b.much
	}
	return 0
}

// recovery returns how long a limit that is used up takes to become available as a whole.
func (s *spec) recovery() time.Duration {
	if s.rule.Shape == limit.Bucket {
		return micros(s.rule.Meter.Cap / s.rule.Meter.Drain)
	}
	_, most := s.stay()
	return most
}

// again returns when a caller that needs the unavailable store should retry. It is the duration of the outage,
// from 1s to 30s, since the end of the outage is unknown. own is held.
func (g *Group) again(now time.Duration) time.Duration {
	s := &g.standing
	since := s.began
	if s.met {
		since = s.recv
	}
	return min(max(retryStore, now-since), longestRetry)
}

// longestRetry is the longest wait that a caller gets if the end of the outage is unknown.
const longestRetry = 30 * time.Second
