package inflight

import "time"

// A View is what a bound looks like at an instant, for status pages and metrics. It is a copy.
type View struct {
	InFlight int // slots taken
	Held     int // of these, by attempts whose callers have left
	Bound    int
	Calm     bool
	Draining bool
	Base     time.Duration // what an answer takes without a queue; 0: not known yet
	Rate     float64       // answers in a second
	Drains   uint64        // so far
	Probes   uint64        // so far, in silence
}

// Look shows the bound. It changes nothing.
func (b *Bound) Look(now time.Duration) View {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.state
	calm := b.calm(now)
	old := 0 // held for too long, which the next attempt finds out
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
