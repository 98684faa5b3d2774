package weir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A common limit of any shape is used completely by users that each exceed their own limit.
func TestUsersOverTheirOwnLimitUseThatOfAll(t *testing.T) {
	const users, long = 300, 20 * sec
	for name, all := range map[string]limit.Limit{
		"bucket":  rate("all", users, 2*sec, 10),
		"rolling": {Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: users / 2, Per: sec}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := steady(all, scoped(rate("own", 1, sec, 1), "user"))
			p.MaxWait = time.Hour
			u := open(t, p, weir.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var got tally
			var wg sync.WaitGroup
			for i := range 2 * users {
				c := weir.Call{Keys: map[string]string{"user": fmt.Sprint(i / 2)}}
				wg.Go(func() { insists(ctx, u, c, func() { got.add("", 1) }) })
			}
			pass(5*sec + 500*ms) // not at the instant at which a second leaves the rolling limit
			before := got.all()[""]
			pass(long)
			n := float64(got.all()[""]-before) / (all.PerSecond() * long.Seconds())
			t.Logf("%s: use %.5f", name, n)
			if n < 0.995 {
				t.Errorf("%s: %.5f of it was used", name, n)
			}
			cancel()
			wg.Wait()
		})
	}
}
