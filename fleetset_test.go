package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// spendFleet makes six calls per process with short waits, and returns how many were admitted.
func spendFleet(all []*weir.Upstream) (went int) {
	for _, u := range all {
		for range 6 {
			ctx, end := context.WithTimeout(background, 100*time.Millisecond)
			p, err := u.Acquire(ctx, weir.Call{Keys: map[string]string{"tenant": "x"}})
			if end(); err == nil {
				went++
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
	}
	return went
}

// Shared limits start empty under another name or scope, and so do limits that become local or shared: no change
// grants units twice.
func TestSetOfAFleetHandsOutNothing(t *testing.T) {
	day := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 5}, Every: bucket.Day}
	hour := limit.Limit{Name: "q", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 5}}
	window := limit.Limit{Name: "q", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: 5 * time.Hour}}
	renamed := func(l limit.Limit, name string) limit.Limit { l.Name = name; return l }
	local := func(l limit.Limit) limit.Limit { l.Local = true; return l }
	adaptive := func(l limit.Limit) limit.Limit { l.Adaptive.On = true; return l }
	for _, l := range []limit.Limit{day, hour, window} {
		stories := map[string][]limit.Limit{
			"names":  {l, renamed(l, "r"), renamed(l, "s"), l},
			"scope":  {l, scoped(l, "tenant"), l, scoped(l, "tenant")},
			"local":  {l, local(l), l, local(l), l},
			"alone":  {local(l), l, local(l)},
			"shapes": {l, renamed(hour, "r"), renamed(window, "s"), renamed(day, "t")},
		}
		if l.Shape == limit.Bucket {
			stories["adaptive"] = []limit.Limit{l, adaptive(l), l, adaptive(l)}
		}
		for name, story := range stories {
			for _, n := range []int{1, 3} {
				synctest.Test(t, func(t *testing.T) {
					all := joined(t, n, steady(story[0]))
					pass(3 * time.Second) // it has reached its store
					got := spendFleet(all)
					for _, l := range story[1:] {
						for _, u := range all {
							set(t, u, steady(l))
						}
						got += spendFleet(all)
						pass(time.Second)
					}
					most := 5
					if story[0].Local {
						most *= n
					}
					if got != most {
						t.Errorf("%v, %s, %d processes: %d went, want the %d there were at the start", l, name, n, got, most)
					}
				})
			}
		}
	}
}
