package notify

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A message has the place, the attempts and the next steps. For a violation it also has the levels of the limits, the attempts in
// flight and the latest attempts. It contains no keys of the caller.
func TestAMessageSaysWhatAPersonNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}, Host: "h"})
		s := put
		s.Key = "account=123456789012,region=eu-west-1,tenant=acme"
		n.Events().GaveUp(exhausted(s))
		n.Events().Violated(weir.Violation{
			Subject: s, InFlight: 7, Last: []time.Duration{12 * time.Millisecond, 130 * time.Millisecond},
			Levels: []weir.LimitLevel{{Rule: limit.Limit{Name: "all", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 20}}, Key: "acme", Level: limit.Level{Left: 3, Full: 20}}},
		})
		synctest.Wait()
		all := b.messages()
		if len(all) != 2 {
			t.Fatalf("%d messages", len(all))
		}
		for i, wants := range [][]string{
			{"3 attempts; last attempt: throttled SlowDown"},
			{"limit all", "3 of 20 left", "7 attempts were in flight", "12ms, 130ms before"},
		} {
			text := all[i].Text()
			for _, want := range append(wants, "s3 put", "Region: eu-west-1", "Account: 123456789012", "Step 1: ", "Step 2: ", "Step 3: ") {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, "acme") || strings.Contains(text, put.ID) || len(all[i].Steps) != 3 {
				t.Errorf("a key of the caller, or other than three steps in\n%s", text)
			}
		}
	})
}
