package weir_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// Keys are listed for limits with labels, shared or local, only once the policy sets labels. A process lists a key of
// a shared limit after the store's first reply about it.
func TestKeysAreShownOfLimitsThatSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hourly := func(name, scope string, local, labels bool) limit.Limit {
			return limit.Limit{Name: name, Scope: scope, Local: local, Labels: labels, Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}}
		}
		policy := func(labels bool) weir.Policy {
			return weir.Policy{Limits: []limit.Limit{hourly("shared", "user", false, labels), hourly("own", "user", true, labels), hourly("hidden", "user", true, false), hourly("all", "", true, labels)}}
		}
		all := joined(t, 2, policy(false))
		seen := func(u *weir.Upstream) (keys []string) {
			for v := range u.LookKeys() {
				keys = append(keys, fmt.Sprintf("%s %s", v.Limit.Name, v.Key))
				if v.Level.Left > 99 || v.Level.Full < 90 {
					t.Errorf("%s of %s: %+v, want one unit gone of about 100", v.Key, v.Limit.Name, v.Level)
				}
			}
			slices.Sort(keys)
			return keys
		}
		p, err := all[0].Acquire(t.Context(), weir.Call{Keys: map[string]string{"user": "ann"}})
		if err != nil {
			t.Fatal(err)
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
		if got := seen(all[0]); len(got) != 0 {
			t.Errorf("no limit says that its keys are labels, and shown are %q", got)
		}
		for _, u := range all {
			if err := u.Set(policy(true)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := seen(all[0]), []string{"own ann", "shared ann"}; !slices.Equal(got, want) {
			t.Errorf("shown are %q, want %q", got, want)
		}
		for range all[0].LookKeys() {
			break // this is allowed
		}
		all[1].LookAt(map[string]string{"user": "ann"})
		if got := seen(all[1]); len(got) != 0 {
			t.Errorf("the process that has not called shows %q", got)
		}
	})
}
