package fleet

import (
	"context"
	"github.com/seed1158cd35/weir/limit"
)

// Fetch is Home's: it gets what a call lacks from the store, waiting in order with the others of this
// process that wait for the same. The answer of a store that is there is waited for also if f.Until is over before: a call
// without patience gets what there is now. With a key of which too many are known nothing is asked.
func (g *Group) Fetch(ctx context.Context, f *limit.Fetch) (limit.Verdict, error) {
	var few [usual]*lease
	leases := few[:0]
	for i := range f.Wants {
		p := f.Wants[i].Leased.(*lease)
		if p.crowdedOut {
			return limit.Verdict{Wait: passingKept, Cause: limit.Cause{Why: i, Lack: limit.LacksStore}}, nil
		}
		leases = append(leases, p)
	}
	if f.Came == 0 {
		f.Came = g.Come()
	}
	return g.queue(leases).wait(ctx, f)
}

// Come is Home's.
func (g *Group) Come() uint64 { return g.came.Add(1) }
