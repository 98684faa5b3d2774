package breaker

import "time"

// slots is the number of distinct instants in a Recent.
const slots = 16

// Recent has the latest failures: their instants and numbers. It is a ring of plain values, so that a State can be compared and
// stored.
type Recent struct {
	At     [slots]time.Duration
	N      [slots]uint32 // 0 means an unused slot
	Newest uint8
}

// within counts the failures less than w before now. It includes failures with an instant later than now.
func (r *Recent) within(now, w time.Duration) int {
	n := 0
	for i, at := range r.At {
		if r.N[i] > 0 && now-at < w {
			n += int(r.N[i])
		}
	}
	return n
}

// add returns r with one more failure at now. A failure less than grain after the newest slot's joins that slot and takes its
// instant, so it expires up to grain early. It expires late only if a later failure was reported before it, and by at most the
// time between the two.
func (r Recent) add(now, grain time.Duration) Recent {
	if i := r.Newest; grain > 0 && r.N[i] > 0 && now-r.At[i] < grain {
		r.N[i]++
		return r
	}
	r.Newest = (r.Newest + 1) % slots
	r.At[r.Newest], r.N[r.Newest] = now, 1
	return r
}

// grain returns the resolution at which failures are recorded. If few failures open the breaker, the ring has each of them, and
// the count is exact. Otherwise the slots, a grain apart, cover the window.
func (c Config) grain() time.Duration {
	if 0 < c.Failures && c.Failures <= slots {
		return 0
	}
	return (c.Window + slots - 1) / slots
}
