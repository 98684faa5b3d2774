package gateway

import (
	"errors"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
)

// Another call may find that a tier is down while a call waits for its next attempt there.
func TestNothingIsRepeatedAtATierThatIsDown(t *testing.T) {
	c, err := cascade.New(cascade.Config{Tiers: []cascade.TierConfig{{Name: "primary"}, {Name: "message", Instant: true}}}, cascade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &progress{of: &exchange{d: &Dialect{o: Options{Name: "chat", Cascade: c}}}, tier: "primary"}
	for range 2 {
		if err := b.again(); err != nil {
			t.Fatalf("an attempt at a tier that is up: %v", err)
		}
	}
	c.Breaker("primary").ForceOpen(c.Now(), time.Hour)
	err = b.again()
	if r, ok := errors.AsType[*weir.Refusal](err); !ok || r.Reason != weir.CircuitOpen || r.RetryAfter < 59*time.Minute || r.RetryAfter > time.Hour {
		t.Errorf("an attempt at a tier that is down: %v", err)
	}
}
