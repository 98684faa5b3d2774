package fleet

import (
	"context"
	"github.com/seed1158cd35/weir/limit"
)

// Fetch implements limit.Home. It gets the units that a call lacks from the store. The call waits in order with
// the calls of this process that lack the same limits. Fetch waits for a response of an available store even if
// f.Until has passed, so a call that cannot wait gets the units that the store has now. It refuses calls for a
// key beyond mostPassing without a request.
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

// Come implements limit.Home.
func (g *Group) Come() uint64 { return g.came.Add(1) }
