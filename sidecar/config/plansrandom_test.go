package config

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// Calls with any plan at any process, one after another. No call proceeds once the usage, with any plan at any
// process, has reached the quota of the call's own plan.
func TestNoPlanGoesBeyondItsQuota(t *testing.T) {
	const text = "callers:\n  limits: {global: off, user: off, user-day: {amount: 20, every: day, scope: user, plans: {premium: 3x, trial: 0.5}}}\nupstreams: {chat: {preset: openai}}\n"
	f, err := Parse("weir.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		synctest.Test(t, func(t *testing.T) { playPlans(t, random, f.Callers.Policy) })
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

func playPlans(t *testing.T, r *rand.Rand, p weir.Policy) {
	amounts, plans := map[string]int{"": 20, "premium": 60, "trial": 10}, []string{"", "premium", "trial"}
	all := fleetOf(t, fleet.NewMemory(nil), p, 3)
	used, story := 0, ""
	for range 30 {
		at, plan, n := r.IntN(len(all)), plans[r.IntN(len(plans))], 1+r.IntN(20)
		gap, went := time.Duration(r.IntN(2))*300*time.Millisecond, 0
		for range n {
			granted, err := all[at].Acquire(t.Context(), weir.Call{Keys: map[string]string{"user": "ann", "plan": plan}})
			if err != nil {
				continue
			}
			granted.Report(outcome.Outcome{Class: outcome.OK})
			if used >= amounts[plan] {
				t.Errorf("process %d: with plan %q a call goes after %d, of %d:%s", at, plan, used, amounts[plan], story)
			}
			used, went = used+1, went+1
			time.Sleep(gap)
		}
		story += fmt.Sprintf(" %d:%s:%d/%d", at, plan, went, n)
		time.Sleep(time.Duration(1+r.IntN(3)) * time.Second) // the other processes learn of it
	}
}

// fleetOf returns n processes with one store that have been in contact with it.
func fleetOf(t *testing.T, store fleet.Store, p weir.Policy, n int) (all []*weir.Upstream) {
	for range n {
		fleet := fleet.New(store, fleet.Options{})
		fleet.Start()
		u, err := weir.New("callers", p, weir.Options{Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
		t.Cleanup(func() {
			u.Close()
			if err := fleet.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(2 * time.Second)
	return all
}
