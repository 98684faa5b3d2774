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
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A crowdOf waits for turns, and counts those that have come.
type crowdOf struct {
	ctx  context.Context
	wg   sync.WaitGroup
	went atomic.Int64
}

func (w *crowdOf) call(u *weir.Upstream, n int) {
	for i := range n {
		w.wg.Go(func() {
			p, err := u.Acquire(w.ctx, weir.Call{Keys: map[string]string{"tenant": "x", "user": fmt.Sprint(i % 3)}})
			if err == nil {
				w.went.Add(1)
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		})
	}
}

// Those who wait for a limit that a reload gives another name or scope, or that is shared no more,
// or only now, wait for its successor then, together with those who come next: not twice as much goes.
func TestWhoWaitsGoesByTheLimitThatTookItsPlace(t *testing.T) {
	shared := limit.Limit{Name: "q", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}}
	local := shared
	local.Local = true
	named := func(l limit.Limit) limit.Limit { l.Name = "r"; return l }
	for name, c := range map[string]struct {
		from, to limit.Limit
		most     int64 // in 5s, of two processes
	}{
		"another name":          {shared, named(shared), 50},
		"another scope":         {shared, scoped(shared, "tenant"), 50},
		"shared no more":        {shared, local, 100},
		"shared only now":       {local, shared, 50},
		"a local one, renamed":  {local, named(local), 100},
		"a local one, rescoped": {local, scoped(local, "tenant"), 100},
	} {
		for _, by := range []string{"", "user"} {
			synctest.Test(t, func(t *testing.T) {
				policy := func(l limit.Limit) weir.Policy {
					p := steady(l)
					p.Fair.By, p.MaxWait = by, 30*time.Second
					return p
				}
				all := fleet(t, 2, policy(c.from))
				pass(3 * time.Second)
				ctx, end := context.WithTimeout(background, 30*time.Second)
				w := crowdOf{ctx: ctx}
				for _, u := range all {
					w.call(u, 200)
				}
				pass(5 * time.Second)
				before := w.went.Load()
				for _, u := range all {
					set(t, u, policy(c.to))
					w.call(u, 200)
				}
				pass(5 * time.Second)
				// One of each process may go at the instant of the change.
				if n := w.went.Load() - before; n > c.most+2 || n < c.most*8/10 {
					t.Errorf("%s, fair by %q: %d went in 5s, want %d", name, by, n, c.most)
				}
				for _, u := range all { // and who does not wait finds what there is
					var p weir.Permit
					if d := u.Try(weir.Call{Keys: map[string]string{"tenant": "y"}}, &p); d.Allowed {
						p.Report(outcome.Outcome{Class: outcome.OK})
					}
				}
				end()
				w.wg.Wait()
			})
		}
	}
}
