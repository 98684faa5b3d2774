package weir_test

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A limit refuses calls beyond its burst. Try does not wait for a turn; Do and Acquire wait up to MaxWait.
func ExampleUpstream_Try() {
	api, err := weir.New("api", weir.Policy{
		Limits: []limit.Limit{{Name: "requests", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 2}}},
	}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		var permit weir.Permit
		if d := api.Try(weir.Call{}, &permit); !d.Allowed {
			fmt.Println(d.Reason, "for", d.RetryAfter.Round(time.Minute))
			continue
		}
		fmt.Println("permitted")
		permit.Report(outcome.Outcome{Class: outcome.OK})
	}
	// Output:
	// permitted
	// permitted
	// rate_limited for 1h0m0s
}
