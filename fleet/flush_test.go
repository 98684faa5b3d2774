package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Other processes can use flushed units. The limit is not exceeded, however often a process flushes during
// calls.
func TestAFlushGivesBackAndNothingIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1000}}
		fleets, regs := fleetOf(t, 2, NewMemory(nil), l, Options{})
		var went tally
		flushed := 0
		for n := range 3000 {
			for _, r := range regs {
				now := clock.System.Now()
				ok, _, err := goOne(context.Background(), now, limit.Charge{Registry: r, Key: "", Cost: 1})
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					went.add(clock.System.Now(), 1)
				}
			}
			time.Sleep(time.Millisecond)
			if n%50 == 49 {
				p := leaseOf(regs[0].Get(0, ""))
				if p.held(clock.System.Now()) > 0 {
					flushed++
				}
				if err := fleets[0].Flush(context.Background()); err != nil || p.held(clock.System.Now()) > 0 {
					t.Fatalf("it holds %d after a flush: %v", p.held(clock.System.Now()), err)
				}
			}
		}
		if worst, where := went.over(l); worst > 0 || len(went.at) < 3000 || flushed == 0 {
			t.Errorf("%d went, %d over: %s; %d flushes had something to give back", len(went.at), worst, where, flushed)
		}
	})
}
