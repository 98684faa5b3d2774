package inflight

import (
	"testing"
	"time"
)

// While the upstream stands still few go on waiting, and for a moment when it goes on; a
// crowd does not, and nobody at a fixed bound.
func TestFewWaitWhileTheUpstreamStandsStill(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  Config
		waiting int
		waits   bool
	}{{"few", Config{}, 180, true}, {"a crowd", Config{}, 201, false}, {"a fixed bound", Config{Limit: 30}, 180, false}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.config)
			r.calm(20, 20, 20*time.Millisecond)
			slots := r.fill()
			came := r.now
			if r.Longer(r.now, came, c.waiting) > r.now {
				t.Error("it need not wait longer: answers are due in a moment")
			}
			for range 15 {
				r.now += time.Second
				if got := r.Longer(r.now, came, c.waiting) > r.now; got != c.waits {
					t.Fatalf("%v after it began to stand still: longer %v", r.now-came, got)
				}
			}
			r.answer(slots[0])
			if got := r.Longer(r.now, came, c.waiting) > r.now; got != c.waits {
				t.Errorf("when it goes on: longer %v", got)
			}
			for _, s := range slots[1:] {
				r.answer(s)
			}
			r.now += time.Second
			if r.Longer(r.now, came, c.waiting) > r.now {
				t.Error("a second later it waits still")
			}
		})
	}
}
