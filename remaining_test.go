package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// What remains of a shared limit is what no call has used. It includes units that the process holds and keeps for an
// outage of the store, and excludes usage that it has not reported yet.
func TestRemainingUnitsOfSharedLimit(t *testing.T) {
	for name, l := range map[string]limit.Limit{
		"rolling":  {Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100_000, Per: 24 * time.Hour}},
		"calendar": {Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleet.New(fleet.NewMemory(nil), fleet.Options{})
				f.Start()
				defer func() { _ = f.Close(context.Background()) }()
				l.Name, l.Unit = "tokens", "tokens"
				u, err := weir.New("api", weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Second}, weir.Options{Fleet: f})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				var used int64
				for i := range int64(40) {
					estimate, usage := 1000+100*(i%3), 1000+700*(i%2)
					p, err := u.Acquire(t.Context(), weir.Call{Cost: map[string]int64{"tokens": estimate}, Estimated: true})
					if err != nil {
						t.Fatal(err)
					}
					p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": usage}})
					used += usage
					if v := u.Look(1).Limits[0]; v.Level.Left != 100_000-used {
						t.Fatalf("call %d: %d remain, want %d", i, v.Level.Left, 100_000-used)
					}
					time.Sleep(time.Duration(i%5) * 20 * time.Millisecond)
				}
			})
		})
	}
}
