package stored

import (
	"slices"
	"sync"
	"time"
)

// A Gatherer collects the jobs of callers for one goroutine, which does them in groups. That goroutine calls Next, does
// the group, calls Answers, and then answers the callers. Use NewGatherer to create one.
type Gatherer[J comparable] struct {
	most int
	wait time.Duration

	mu    sync.Mutex
	jobs  []J           // jobs that are not in a group yet
	wants int           // how many jobs wake the goroutine; 0 if it is not waiting
	wake  chan struct{} // wakes the goroutine

	// Used only by the goroutine.
	comes int       // how many jobs are expected soon: of callers that are about to be answered, and of callers that waited at that time
	began time.Time // when the previous group was taken
}

// NewGatherer returns a Gatherer for groups of at most most jobs. wait limits how long it waits for callers that are
// likely to return.
func NewGatherer[J comparable](most int, wait time.Duration) *Gatherer[J] {
	return &Gatherer[J]{most: most, wait: wait, wake: make(chan struct{}, 1)}
}

// Add adds a job. Next returns it in a group unless it is taken back.
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

// TakeBack removes a job. It returns false if the job is in a group already.
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

// TakeSome removes up to a group of jobs, for another goroutine that will do them. It calls takes for each job in
// order, and removes the job if takes returns true.
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

// Waiting reports whether is returns true for any waiting job.
func (g *Gatherer[J]) Waiting(is func(J) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.jobs, is)
}

// Answers announces that n callers are about to be answered.
func (g *Gatherer[J]) Answers(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.comes = 0
	if n > 1 {
		g.comes = min(len(g.jobs)+n, g.most)
	}
}

// Next returns the next group, after the previous one is done. It returns nil if stop is closed. If several callers
// have just been answered, they are likely to return immediately, and Next waits a little for them. Otherwise they
// would wait for the whole next group, and groups half as large would cost as much.
func (g *Gatherer[J]) Next(stop <-chan struct{}) []J {
	took := time.Since(g.began)
	select {
	case <-stop: // even if jobs keep arriving
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

// Ready waits until there is a job. It returns false if stop is closed.
func (g *Gatherer[J]) Ready(stop <-chan struct{}) bool { return g.waits(1, stop, nil) }

// waits waits until there are n jobs. It returns false if stop or over comes first.
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
		case <-g.wake: // the signal may belong to an earlier wait
		case <-over:
			return false
		case <-stop:
			return false
		}
	}
}
