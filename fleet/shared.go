package fleet

import (
	"context"
	"github.com/seed1158cd35/weir/limit"
	"time"
)

// Fetch is Home's: it gets what a call lacks from the store, waiting in order with the others of this
// process that wait for the same. The answer of a store that is there is waited for also if f.Until is over before: a call
// without patience gets what there is now. With more than mostShared limits, or a key of which too many are known, nothing
// is asked.
func (g *Group) Fetch(ctx context.Context, f *limit.Fetch) (limit.Verdict, error) {
	var leases [mostShared]*lease
	var costs [mostShared]int64
	var turns [mostShared]limit.Turn
	for i := range f.Wants {
		if i == mostShared { // more than a store is asked for at once
			return limit.Verdict{Wait: time.Second}, nil
		}
		leases[i], costs[i] = f.Wants[i].Leased.(*lease), f.Wants[i].Cost
		if leases[i].crowdedOut {
			return limit.Verdict{Wait: passingKept, Cause: limit.Cause{Why: i, Lack: limit.LacksStore}}, nil
		}
	}
	if f.Came == 0 {
		f.Came = g.Come()
	}
	n := len(f.Wants)
	v, err := g.queue(leases[:n]).wait(ctx, f, costs[:n], turns[:n])
	for i := range f.Wants {
		f.Wants[i].Turn = turns[i]
	}
	return v, err
}

// Come is Home's.
func (g *Group) Come() uint64 { return g.came.Add(1) }
