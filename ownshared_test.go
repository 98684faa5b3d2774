package weir_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// Calls that wait for their own shared limit delay no other call: 180 other calls use a limit of 100 per second in 2
// s, while 20 calls of one tenant wait for minutes.
func TestOwnSharedLimitStandsInNobodysWay(t *testing.T) {
	for name, local := range map[string]bool{"both shared": false, "one shared": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := rate("all", 100, sec, 10)
				all.Local = local
				p := with(steady(all, scoped(rate("own", 2, 60*sec, 2), "tenant")), func(p *weir.Policy) {
					p.Fair.By, p.MaxWait = "user", 120*sec
				})
				u := join(t, fleet.NewMemory(nil), p, fleet.Options{}).Upstream
				time.Sleep(5 * sec)
				call := func(tenant string) {
					x, err := u.Acquire(background, weir.Call{Keys: map[string]string{"user": tenant, "tenant": tenant}})
					if err == nil {
						x.Report(outcome.Outcome{Class: outcome.OK})
					}
				}
				for i := range 30 { // the available units
					go call(fmt.Sprint("first", i))
				}
				time.Sleep(20 * ms)
				begin := clock.System.Now()
				var others, one sync.WaitGroup
				for i := range 200 {
					if i < 20 {
						one.Go(func() { call("one") })
						continue
					}
					others.Go(func() { call(fmt.Sprint("other", i)) })
				}
				others.Wait()
				if took := clock.System.Now() - begin; took > 3*sec {
					t.Errorf("the last of the others went after %v", took)
				}
				one.Wait()
			})
		})
	}
}

// Two limits are used completely although some calls want both, and these calls proceed too.
func TestTwoSharedLimitsAreUsed(t *testing.T) {
	for name, local := range map[string]bool{"both shared": false, "one shared": true} {
		const least = 95 // in percent
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := func(name string, operations ...string) limit.Limit {
					l := rate(name, 10, sec, 5)
					l.Operations = operations
					return l
				}
				a, b := of("a", "x", "z"), of("b", "y", "z")
				a.Local = local
				p := with(steady(a, b), func(p *weir.Policy) { p.Fair.By, p.MaxWait = "user", 30*sec })
				u := join(t, fleet.NewMemory(nil), p, fleet.Options{}).Upstream
				time.Sleep(2 * sec)
				const lasts = 30
				ctx, cancel := context.WithTimeout(background, lasts*sec)
				defer cancel()
				went := map[string]*atomic.Int64{"x": {}, "y": {}, "z": {}}
				var wg sync.WaitGroup
				for operation, n := range went {
					for range 6 {
						wg.Go(func() {
							for ctx.Err() == nil {
								x, err := u.Acquire(ctx, weir.Call{Operation: operation, Keys: map[string]string{"user": operation}})
								if err != nil {
									time.Sleep(10 * ms)
									continue
								}
								n.Add(1)
								x.Report(outcome.Outcome{Class: outcome.OK})
							}
						})
					}
				}
				wg.Wait()
				x, y, z := went["x"].Load(), went["y"].Load(), went["z"].Load()
				for limit, used := range map[string]int64{"a": x + z, "b": y + z} {
					if used < least*10*lasts/100 || used > 10*lasts+5 {
						t.Errorf("limit %s: %d of %d went", limit, used, 10*lasts+5)
					}
				}
				if z == 0 {
					t.Error("nothing went that wants both")
				}
			})
		})
	}
}
