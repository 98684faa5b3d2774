package weir_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A violation reports the latest attempts with the units that they took.
func TestViolationReportsAmounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []weir.Violation
		u, err := weir.New("gemini", weir.Policy{Limits: []limit.Limit{
			{Name: "rpm", Rate: bucket.Rate{Amount: 100, Per: time.Minute, Burst: 100}},
			{Name: "tpm", Unit: "tokens", Rate: bucket.Rate{Amount: 10_000, Per: time.Minute, Burst: 10_000}},
		}}, weir.Options{Events: weir.Events{Violated: func(v weir.Violation) { got = append(got, v) }}})
		if err != nil {
			t.Fatal(err)
		}
		for _, tokens := range []int64{100, 2000, 30} {
			p, err := u.Acquire(context.Background(), weir.Call{Cost: map[string]int64{"tokens": tokens}})
			if err != nil {
				t.Fatal(err)
			}
			class := outcome.OK
			if tokens == 30 {
				class = outcome.Throttled
			}
			p.Report(outcome.Outcome{Class: class})
			time.Sleep(time.Second)
		}
		if len(got) != 1 || len(got[0].Last) < 3 {
			t.Fatalf("%+v", got)
		}
		if v := got[0]; !slices.Equal(v.Amounts[:3], []int64{30, 2000, 100}) || !slices.Equal(v.Last[:3], []time.Duration{0, time.Second, 2 * time.Second}) {
			t.Errorf("%v %v", v.Last, v.Amounts)
		}
	})
}
