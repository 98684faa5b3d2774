package limit

import (
	"context"
	"time"
)

// Fetch is Home's: it gets what a call lacks from the store, waiting in order with the others of this
// process that wait for the same.
func (g *Group) Fetch(ctx context.Context, f *Fetch) (Verdict, error) {
	var pools [mostShared]*pool
	var costs [mostShared]int64
	var turns [mostShared]Turn
	for i := range f.Wants {
		if i == mostShared { // more than a store is asked for at once
			return Verdict{Wait: time.Second}, nil
		}
		pools[i], costs[i] = f.Wants[i].Leased.(*pool), f.Wants[i].Cost
		if pools[i].crowdedOut {
			return Verdict{Wait: passingKept, Cause: Cause{Why: i, Lack: LacksStore}}, nil
		}
	}
	n := len(f.Wants)
	v, late, err := g.queue(pools[:n]).wait(ctx, f.Now, f.Until, f.Priority, costs[:n], turns[:n])
	f.Now, f.Late = g.fleet.clock.Now(), late
	for i := range f.Wants {
		f.Wants[i].Turn = turns[i]
	}
	return v, err
}
