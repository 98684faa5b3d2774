package weir_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An admitted attempt reports the units that it took from each limit. A refused attempt took none.
func TestWhatAnAttemptTakesIsToldLimitByLimit(t *testing.T) {
	got := make(map[string]int64)
	u, err := weir.New("u", weir.Policy{MaxWait: -1, Limits: []limit.Limit{
		{Name: "requests", Rate: bucket.Rate{Amount: 2, Per: time.Hour, Burst: 2}},
		{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 1000, Per: time.Hour, Burst: 1000}},
		{Name: "in", Unit: "input_tokens", Rate: bucket.Rate{Amount: 1000, Per: time.Hour, Burst: 1000}},
	}}, weir.Options{Events: weir.Events{Acquired: func(a weir.Acquired) { got[a.Limit+" of "+a.Upstream] += a.Units }}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		var p weir.Permit
		u.Try(weir.Call{Cost: map[string]int64{"tokens": 50, "input_tokens": 30}}, &p)
	}
	if len(got) != 3 || got["requests of u"] != 2 || got["tokens of u"] != 100 || got["in of u"] != 60 {
		t.Errorf("%v, want 2 requests, 100 tokens and 60 of them in", got)
	}
}
