package delivery_test

import (
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// The schedule messaging is the same for calls and for deliveries: the first attempt and 3 retries.
func TestMessagingIsOneSchedule(t *testing.T) {
	calls, _ := retry.Schedule("messaging")
	later, ok := delivery.ScheduleOf("messaging")
	if !ok || calls.Attempts != 4 || len(later.Delays) != 3 {
		t.Fatalf("%d attempts of calls, %d of deliveries; want 4", calls.Attempts, len(later.Delays)+1)
	}
	for i, least := range later.Delays {
		for range 1000 {
			if d := calls.Delay(i+1, 0, outcome.Failed, nil); d < least || d > least+later.Added {
				t.Fatalf("before retry %d calls wait %v, deliveries %v to %v", i+1, d, least, least+later.Added)
			}
			if d, ok := later.Delay(i + 1); !ok || d < least || d > least+later.Added {
				t.Fatalf("before retry %d deliveries wait %v", i+1, d)
			}
		}
	}
	if _, ok := later.Delay(4); ok {
		t.Error("deliveries are sent a fifth time")
	}
}
