package config

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// The quotas of all plans are one quota. Units that a user has used with a plan are also gone without the plan, and
// vice versa. Other users have their own quota, and failed calls are charged to no user.
func TestQuotasOfPlansAreOne(t *testing.T) {
	for _, unit := range []string{"requests", "tokens"} {
		synctest.Test(t, func(t *testing.T) {
			text := fmt.Sprintf("callers:\n  limits: {user: off, user-day: {amount: 20, every: day, unit: %s, scope: user, plans: {premium: 3x, trial: 0.5}}}\nupstreams: {chat: {preset: openai}}\n", unit)
			f, err := Parse("weir.yaml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			u, err := weir.New("callers", f.Callers.Policy, weir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ask := func(user, plan string, o outcome.Outcome) bool {
				c := weir.Call{Keys: map[string]string{"user": user, "plan": plan}}
				if unit == "tokens" {
					c.Cost = map[string]int64{"tokens": 3}
					if o.Class == outcome.OK {
						o.Usage = map[string]int64{"tokens": 1}
					}
				}
				p, err := u.Acquire(t.Context(), c)
				if err == nil {
					p.Report(o)
				}
				return err == nil
			}
			goes := func(user, plan string, want int) {
				t.Helper()
				n := 0
				for range 100 {
					if ask(user, plan, outcome.Outcome{Class: outcome.OK}) {
						n++
					}
				}
				if unit == "tokens" && want > 0 {
					want -= 2 // one call reserves three
				}
				if n != want {
					t.Errorf("%s: %d calls of %s with plan %q, want %d", unit, n, user, plan, want)
				}
			}
			for range 100 {
				ask("ann", "premium", outcome.Outcome{Class: outcome.Canceled, Undone: true, Unsent: true})
			}
			goes("ann", "premium", 60)
			goes("ann", "", 0)
			goes("ann", "unknown", 0)
			goes("ann", "trial", 0)
			goes("bob", "", 20)
			goes("bob", "trial", 0)
			goes("cid", "trial", 10)
			if unit == "requests" {
				goes("bob", "premium", 40)
				goes("cid", "", 10)
				goes("cid", "premium", 40)
			}
		})
	}
}
