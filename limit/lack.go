package limit

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Lack is why a call was refused of a limit that a fleet shares, where it was not for what the
// store said of the limit.
type Lack uint8

const (
	LacksNothing Lack = iota
	LacksStore        // the process holds no part of the limit, or must not use one, or has no room for the key
	LacksPart         // its part never holds what the call costs
	LacksQuota        // what stood by of the quota is used up
	LacksTurn         // of its part there is not enough yet
	LacksMemory       // the store does not know what was used, and counts all as used up
)

var lackWords = [...]string{"", "no_part", "part_too_small", "standby_spent", "part_spent", "cold"}

// Word is for logs and answers: cold, no_part, part_too_small, part_spent or standby_spent. It is
// empty for LacksNothing.
func (l Lack) Word() string { return lackWords[min(int(l), len(lackWords)-1)] }

// A Want is what a call wanted in vain of a limit that a fleet shares, for which it had to do with
// the store's state.
type Want struct {
	Lack  Lack
	State State
	Part  float64       // of the limit, which this process uses without the store
	Wait  time.Duration // until it is worth asking again, as far as that is known
	Keys  bool          // there are too many keys for which the process has no room; see Limit.MaxKeys
}

// Away reports whether it was because the store does not answer, or too late, or was not asked.
func (w Want) Away() bool { return w.Lack != LacksNothing && w.Lack != LacksMemory }

var storeIs = [...]string{
	StateNew:    "the store has not been reached since the start",
	StateHeard:  "the store does not answer",
	StateCutOff: "the store does not answer",
	StateSlow:   "the store answers too late for that to be used",
	StateOut:    "the store has not answered for longer than outage",
}

// String says what a person has to know of it.
func (w Want) String() string {
	if w.Keys && w.Lack == LacksStore {
		return "this process knows as many keys as it has room for, and more beyond that than it asks the store for at once: give max_keys room for all that are in use"
	}
	is := storeIs[min(int(w.State), len(storeIs)-1)]
	switch w.Lack {
	case LacksNothing:
		return ""
	case LacksMemory:
		return "the store is cold: it is new or was emptied, does not know what was used of the limit and counts it as used up; if nobody used it, run weir store init"
	case LacksPart:
		return fmt.Sprintf("%s, and the part of the limit that this process goes on with, %.3g%%, never holds what the call costs, which has to wait for the store", is, 100*w.Part)
	case LacksQuota:
		return is + ", and what this process keeps of the quota for that is used up"
	case LacksTurn:
		return fmt.Sprintf("%s, and of the part of the limit that this process goes on with, %.3g%%, there is not enough yet", is, 100*w.Part)
	}
	return is + ", and this process has no part of the limit to use"
}

// Lacks is what a charge of the permit lacks beside what the store says of its limit.
func (p *Permit) Lacks(now time.Duration, i int) Want {
	e := p.at(i)
	if e.Registry.group == nil || e.Cost == 0 {
		return Want{}
	}
	e.find(now)
	return e.limiter.pool().lacks(now, e.Cost)
}

func (p *pool) lacks(now time.Duration, cost int64) Want {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	w := Want{State: g.standing.state(now)}
	if p.crowdedOut {
		w.Lack, w.Wait, w.Keys = LacksStore, passingKept, true
		return w
	}
	if u.mode.uses() {
		a := p.allows(now, u, 0, cost)
		w.Lack, w.Part, w.Wait = a.lack, float64(u.part)/Whole, a.wait
		if a.lack == LacksNothing {
			w.Lack = LacksTurn
		}
	} else if at := p.sight(); u.mode != asking && (!at.known || g.failing.Load()) {
		w.Lack = LacksStore
	} else if at.known && at.grant.Cold && !g.warm.Load() {
		w.Lack, w.Wait = LacksMemory, max(0, at.grant.Wait-(now-at.at))
	}
	if w.Wait == bucket.Never || w.Lack == LacksStore {
		w.Wait = g.again(now)
	}
	return w
}

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

const longestRetry = 30 * time.Second
