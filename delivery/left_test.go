package delivery_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// An attempt that another worker began and abandoned is counted by upstream when the delivery goes back to the queue,
// because it may be repeated.
func TestWhatAWorkerLeftIsCounted(t *testing.T) {
	var left atomic.Int64
	var d delivery.Delivery
	play(t, quiet(), func(s *site) {
		s.w.Events.Left = func(upstream string, n int) {
			if upstream == "a" {
				left.Add(int64(n))
			}
		}
		var err error
		if d, _, err = s.q.Accept(s.Context(), message("x")); err != nil {
			t.Fatal(err)
		}
		if all, err := s.q.Claim(s.Context(), delivery.Ask{Upstream: "a", Owner: "killed", Lease: time.Minute}); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
	}, func(s *site) {
		s.sleep(2 * time.Minute)
		if s.is(d.ID, delivery.Completed, 2); left.Load() != 1 {
			t.Errorf("%d were counted as left, want one", left.Load())
		}
	})
}
