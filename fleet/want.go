package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Want is what a call lacks for which the store's state is to blame, and how long that may last: what refusals tell besides
// the limit's own wait. LacksNothing if the store is there.
func (p *lease) Want(now time.Duration, cost int64) limit.Want {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	w := limit.Want{State: g.standing.state(now)}
	// The key is one of more than mostPassing: the store is not asked for it, and in passingKept there may be room.
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
	} else if part := g.beating.reserved(); u.mode == asking && part >= muchReserved && p.spec().rule.Shape != limit.Calendar {
		w.Lack, w.Part = limit.LacksReserved, float64(part)/Whole
	}
	if w.Wait == bucket.Never || w.Lack == limit.LacksStore {
		w.Wait = g.again(now)
	}
	return w
}

// muchReserved is from which part on, in millionths, what is reserved for silent processes is named as the cause of a
// refusal.
const muchReserved = Whole / 10

// reserved is the part of each limit that the store reserves for processes that it knows and does not hear.
func (b *beating) reserved() int64 { return max(0, b.out.Out-b.out.Unknown) }

// again is when to ask again of who needs the store, which is away: nobody knows when that is back. It
// is as long as it has been away, from 1s to 30s; own is held.
func (g *Group) again(now time.Duration) time.Duration {
	s := &g.standing
	since := s.began
	if s.met {
		since = s.recv
	}
	return min(max(retryStore, now-since), longestRetry)
}

// longestRetry is the longest wait that a caller is told where nobody knows when the store is back.
const longestRetry = 30 * time.Second
