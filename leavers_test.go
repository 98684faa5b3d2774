package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A caller that leaves early does not shorten other waits. Calls of other keys, of other operations and, with
// fairness, of other flows within their share are served as if it did not exist.
func TestWhoLeavesChangesNothingForOthers(t *testing.T) {
	get, put := rate("get", 5, sec, 1), rate("put", 10, sec, 2)
	get.Operations, put.Operations = []string{"get"}, []string{"put"}
	for name, c := range map[string]struct {
		policy weir.Policy
		leaves weir.Call
		inTurn bool // only with fairness
	}{
		"a limit of each tenant": {policy: weir.Policy{Limits: []limit.Limit{scoped(rate("each", 10, sec, 2), "tenant")}}},
		"other operations": {
			policy: weir.Policy{Operations: []weir.Operation{{Name: "get"}, {Name: "put"}}, Limits: []limit.Limit{get, put}},
			leaves: weir.Call{Operation: "get"},
		},
		"a limit of all, in turn": {policy: weir.Policy{Limits: []limit.Limit{rate("all", 50, sec, 5)}}, inTurn: true},
	} {
		for i := range 4 {
			fair, shared := i&1 > 0, i&2 > 0
			if c.inTurn && !fair {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				p := c.policy
				if fair {
					p.Fair.By = "tenant"
				}
				u := fleetOf(t, p, shared)
				pass(3 * sec)
				leaves := c.leaves
				leaves.Keys = map[string]string{"tenant": "leaves"}
				go impatient(u, leaves, 20*sec)
				pass(4 * sec)
				stays := weir.Call{Operation: "put", Safe: true, Keys: map[string]string{"tenant": "stays"}}
				for range 3 {
					if n := crowded(u, stays, 10); n != 10 {
						t.Errorf("%s, fair %v, shared %v: %d of 10 calls were served", name, fair, shared, n)
					}
					pass(4 * sec)
				}
				pass(15 * sec)
			})
		}
	}
}

// fleetOf returns an upstream, with its own fleet if its limits are shared.
func fleetOf(t *testing.T, p weir.Policy, shared bool) *weir.Upstream {
	if shared {
		return joined(t, 1, p)[0]
	}
	return open(t, p, weir.Options{})
}

// impatient makes a call every 10 ms, whose caller leaves after 3 ms.
func impatient(u *weir.Upstream, c weir.Call, lasts time.Duration) {
	for range lasts / (10 * ms) {
		go func() {
			ctx, leave := context.WithCancel(background)
			defer time.AfterFunc(3*ms, leave).Stop()
			_, _ = weir.Do(ctx, u, c, func(context.Context) (int, error) { return 1, nil })
		}()
		pass(10 * ms)
	}
}

// crowded makes n calls together, and returns how many were served.
func crowded(u *weir.Upstream, c weir.Call, n int) (served int) {
	done := make(chan error)
	for range n {
		go func() {
			_, err := weir.Do(background, u, c, func(context.Context) (int, error) { return 1, nil })
			done <- err
		}()
	}
	for range n {
		if <-done == nil {
			served++
		}
	}
	return served
}
