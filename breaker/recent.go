package breaker

import "time"

// slots is how many instants a Recent can tell apart.
const slots = 16

// Recent remembers the latest failures: when, and how many then. It is a ring
// of plain values, so that a State can be compared and stored.
type Recent struct {
	At     [slots]time.Duration
	N      [slots]uint32 // 0 marks an unused slot
	Newest uint8
}

// within counts the failures less than w before now. Failures reported with a
// later instant than now count too.
func (r *Recent) within(now, w time.Duration) int {
	n := 0
	for i, at := range r.At {
		if r.N[i] > 0 && now-at < w {
			n += int(r.N[i])
		}
	}
	return n
}

// add is r with one more failure at now. A failure less than grain after the
// newest slot's joins that slot and takes its instant, so it is forgotten early
// by up to grain. It is forgotten late only if its report was overtaken by that
// of a later one, and by no more than the time between the two.
func (r Recent) add(now, grain time.Duration) Recent {
	if i := r.Newest; grain > 0 && r.N[i] > 0 && now-r.At[i] < grain {
		r.N[i]++
		return r
	}
	r.Newest = (r.Newest + 1) % slots
	r.At[r.Newest], r.N[r.Newest] = now, 1
	return r
}

// grain is how finely failures must be told apart. If few of them open the
// breaker, the ring holds as many one by one, and the count is exact. Otherwise
// slots a grain apart reach over the whole window.
func (c Config) grain() time.Duration {
	if 0 < c.Failures && c.Failures <= slots {
		return 0
	}
	return (c.Window + slots - 1) / slots
}
