package inflight

import "time"

// A View is a copy of a bound's state at an instant, for status pages and metrics.
type View struct {
	InFlight int // slots taken
	Held     int // slots among them whose callers have left
	Bound    int
	Calm     bool
	Draining bool
	Base     time.Duration // latency without a queue; 0 if not known yet
	Rate     float64       // responses per second
	Drains   uint64        // number so far
	Probes   uint64        // number so far, during silence
}

// Look returns the state of the bound. It changes nothing.
func (b *Bound) Look(now time.Duration) View {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.state
	calm := b.calm(now)
	old := 0 // held for too long; the next attempt frees them
	for _, h := range s.held {
		if h.until <= now {
			old++
		}
	}
	return View{
		InFlight: b.InFlight() - old, Held: len(s.held) - old, Bound: int(s.bound(now, calm) / scale), Calm: calm, Draining: s.drain.on,
		Base: s.learnt.base, Rate: float64(s.learnt.rate()) / scale, Drains: s.drain.count, Probes: s.quiet.probes,
	}
}
