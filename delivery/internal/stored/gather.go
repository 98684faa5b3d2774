package stored

import (
	"slices"
	"sync"
	"time"
)

// A Gatherer puts together what callers hand in, for one goroutine that does it in groups: Next, and Answers before it answers the
// group. Make it with NewGatherer.
type Gatherer[J comparable] struct {
	most int
	wait time.Duration

	mu    sync.Mutex
	jobs  []J           // that were handed in, and not taken
	wants int           // how many are to be there to wake the goroutine; 0 if it does not wait for more
	wake  chan struct{} // wakes it

	// Of the goroutine.
	comes int       // how many are likely to be there soon: those whose callers are about to be answered, and those that waited then
	began time.Time // when the group before was taken
}

// NewGatherer makes one of groups of most jobs, whose callers are waited for so long.
func NewGatherer[J comparable](most int, wait time.Duration) *Gatherer[J] {
	return &Gatherer[J]{most: most, wait: wait, wake: make(chan struct{}, 1)}
}

// Add hands a job in. It is in a group that Next returns, unless it is taken back.
func (g *Gatherer[J]) Add(j J) {
	g.mu.Lock()
	g.jobs = append(g.jobs, j)
	wakes := g.wants > 0 && len(g.jobs) >= g.wants
	if wakes {
		g.wants = 0
	}
	g.mu.Unlock()
	if wakes {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// TakeBack takes a job back that was handed in; false if it is in a group already.
func (g *Gatherer[J]) TakeBack(j J) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.jobs, j)
	if i < 0 {
		return false
	}
	g.jobs = slices.Delete(g.jobs, i, i+1)
	return true
}

// TakeSome takes jobs out of what waits, a group of them at most, for another who does them. takes is asked for each, in their order.
func (g *Gatherer[J]) TakeSome(takes func(J) bool) (some []J) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs = slices.DeleteFunc(g.jobs, func(j J) bool {
		is := len(some) < g.most && takes(j)
		if is {
			some = append(some, j)
		}
		return is
	})
	return some
}

// Waiting reports whether a job waits of which that is so.
func (g *Gatherer[J]) Waiting(is func(J) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.jobs, is)
}

// Answers says that so many callers are about to be answered.
func (g *Gatherer[J]) Answers(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.comes = 0
	if n > 1 {
		g.comes = min(len(g.jobs)+n, g.most)
	}
}

// Next is the next group: it is called when the one before is done. nil if stop is closed. Where several callers were answered just now
// they are likely to come again at once: those are waited for a little, or they would wait for all of this group, and the next, half as
// large, would cost as much.
func (g *Gatherer[J]) Next(stop <-chan struct{}) []J {
	took := time.Since(g.began)
	select {
	case <-stop: // however many come
		return nil
	default:
	}
	if !g.waits(1, stop, nil) {
		return nil
	}
	if g.comes > 1 {
		over := time.NewTimer(min(took/4, g.wait))
		g.waits(g.comes, stop, over.C)
		over.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.jobs), g.most)
	group := slices.Clone(g.jobs[:n])
	g.jobs = slices.Delete(g.jobs, 0, n)
	g.began = time.Now()
	return group
}

// Ready waits until a job is there; false if stop is closed.
func (g *Gatherer[J]) Ready(stop <-chan struct{}) bool { return g.waits(1, stop, nil) }

// waits until so many jobs are there; false if stop or over came before.
func (g *Gatherer[J]) waits(n int, stop <-chan struct{}, over <-chan time.Time) bool {
	for {
		g.mu.Lock()
		g.wants = 0
		if len(g.jobs) >= n {
			g.mu.Unlock()
			return true
		}
		g.wants = n
		g.mu.Unlock()
		select {
		case <-g.wake: // or it was meant for a wait before this one
		case <-over:
			return false
		case <-stop:
			return false
		}
	}
}
