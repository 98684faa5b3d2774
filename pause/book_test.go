package pause

import (
	"testing"
	"time"
)

// A later answer that asks for less does not end what an earlier one asked for.
func TestAPauseIsNeverMadeShorter(t *testing.T) {
	for _, why := range []Reason{Rate, Quota, Hand, Here} {
		var b Book
		for _, until := range []time.Duration{10 * time.Second, 3 * time.Second, 0} {
			b.Add(time.Second, All(), why, Span{Until: until})
		}
		if e := b.In(2*time.Second, All()); e.Until() != 10*time.Second {
			t.Errorf("%v: paused until %v, want 10s", why, e.Until())
		}
		b.Add(2*time.Second, All(), why, Span{Until: 12 * time.Second})
		if e := b.In(2*time.Second, All()); e.Until() != 12*time.Second {
			t.Errorf("%v: paused until %v, want 12s", why, e.Until())
		}
	}
}
