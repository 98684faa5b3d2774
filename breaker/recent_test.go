package breaker

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The ring forgets failures at most a grain early, and never late.
func TestRecentCountsTheWindow(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := Config{Window: time.Duration(1 + r.IntN(1e9)), Failures: 1 + r.IntN(200)}
		var ring Recent
		var all []time.Duration
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(r.Float64() * r.Float64() * float64(c.Window) / float64(1+r.IntN(50)))
			ring = ring.add(now, c.grain())
			all = append(all, now)
			most, least := count(all, now-c.Window), count(all, now-c.Window+c.grain())
			got := ring.within(now, c.Window)
			if c.grain() == 0 { // only the threshold matters
				got, most, least = min(got, c.Failures), min(most, c.Failures), min(least, c.Failures)
			}
			if got < least || got > most {
				t.Fatalf("seed %d at %v: got %d, want %d to %d; %+v", seed, now, got, least, most, c)
			}
		}
	}
}

func TestOvertakenFailureCountsAtItsOwnInstant(t *testing.T) {
	c := Config{Failures: 2, Window: time.Minute}
	r := Recent{}.add(60*time.Second, c.grain()).add(5*time.Second, c.grain())
	if got := r.within(64*time.Second, c.Window); got != 2 {
		t.Errorf("at 64s: got %d, want 2", got)
	}
	if got := r.within(65*time.Second, c.Window); got != 1 {
		t.Errorf("at 65s: got %d, want 1", got)
	}
}

func count(all []time.Duration, after time.Duration) (n int) {
	for _, at := range all {
		if at > after {
			n++
		}
	}
	return n
}
