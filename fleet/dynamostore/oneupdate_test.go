package dynamostore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An ask of a single process is one update. So its duration is the duration of one update, as in
// RateLimiterAcquisitionLatency.
func TestAnAskIsOneUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		s := New(clientOf(f), "weir", Options{})
		rule := &fleet.Rule{Name: "l", Meter: bucket.MeterOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 100})}
		ask := func(id uint64) {
			a := fleet.Ask{Group: "up", ID: id, Lane: 1, Copies: 1, Claims: []fleet.Claim{{Rule: rule, Cost: 1}}}
			if err := s.Take(context.Background(), &a); err != nil || a.Granted != 1 {
				t.Fatalf("%d: %d granted, %v", id, a.Granted, err)
			}
		}
		ask(1) // the first ask also learns the server's clock
		before := s.Stats()
		for id := range uint64(100) {
			ask(id + 2)
			time.Sleep(20 * time.Millisecond)
		}
		after := s.Stats()
		if n := after.Requests - before.Requests; n != 100 || after.Failed != before.Failed {
			t.Errorf("%d requests for 100 asks, of which %d failed", n, after.Failed-before.Failed)
		}
	})
}
