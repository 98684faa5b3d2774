package trace

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Kept is called for the calls whose traces are exported, with the IDs of these traces, and for no other call.
func TestKeptHearsOfKeptTracesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []Kept
		o := quiet
		o.Kept = func(k Kept) { heard = append(heard, k) }
		tracer, to, u := traced(t, o, weir.Policy{Retry: retry.Config{Attempts: 1}, Limits: []limit.Limit{{Name: "few", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}, MaxWait: -1})
		one := func(c outcome.Class) {
			run := u.Begin(t.Context(), weir.Call{})
			for run.Next() {
				time.Sleep(40 * time.Millisecond)
				run.Report(outcome.Outcome{Class: c}, fails(c))
			}
		}
		one(outcome.OK) // not kept
		time.Sleep(time.Second)
		one(outcome.Failed)
		one(outcome.OK) // refused
		tracer.Close(t.Context())
		var got []string
		for i, root := range to.roots() {
			k := heard[i]
			if k.Trace != root.Trace || k.Upstream != "api" {
				t.Errorf("heard %+v of %v", k, root.Trace)
			}
			got = append(got, fmt.Sprint(k.Result, " ", k.Took))
		}
		if want := "[failed 40ms refused 0s]"; fmt.Sprint(got) != want || len(heard) != 2 {
			t.Errorf("heard %v, of %d calls, want %v", got, len(heard), want)
		}
	})
}
