package adaptive

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// trips is an approximate histogram of round trip times. It has four steps per doubling and samples one call in
// sixteen.
type trips struct {
	count [128]atomic.Uint32
	all   atomic.Uint32
}

const remembered = 1024 // number of trips after which the counts are halved

func (t *trips) note(now, trip time.Duration) {
	if now>>10&15 != 0 || trip <= 0 {
		return
	}
	t.count[step(trip)].Add(1)
	if t.all.Add(1) >= remembered {
		t.halve()
	}
}

// step returns four times the logarithm of microseconds, rounded down.
func step(trip time.Duration) int {
	us := uint64(trip/time.Microsecond) + 4
	log := bits.Len64(us) - 3
	return min(log*4+int(us>>log&3), 127)
}

// top returns the longest trip of a step.
func top(step int) time.Duration {
	return time.Duration((uint64(step&3)+5)<<(step/4)-4) * time.Microsecond
}

// halve halves all counts. Concurrent notes may be lost, which is acceptable for an approximation.
func (t *trips) halve() {
	all := uint32(0)
	for i := range t.count {
		n := t.count[i].Load() / 2
		t.count[i].Store(n)
		all += n
	}
	t.all.Store(all)
}

// p99 returns the time that 99 of 100 trips do not exceed; 0 if too few are known.
func (t *trips) p99() time.Duration {
	all := t.all.Load()
	if all < 20 {
		return 0
	}
	over := all / 100
	for i := len(t.count) - 1; i >= 0; i-- {
		n := t.count[i].Load()
		if n > over {
			return top(i)
		}
		over -= n
	}
	return 0
}
