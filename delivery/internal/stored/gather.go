package stored

import "time"

// A Gatherer puts together what callers hand in, for one goroutine that does it in groups. Make it with NewGatherer.
type Gatherer[J any] struct {
	Jobs chan J // unbuffered: who has handed in knows that it was taken

	most   int
	wait   time.Duration
	latest int       // of the group before: how many
	began  time.Time // and when it was taken
}

// NewGatherer makes one of groups of most jobs, whose callers are waited for so long.
func NewGatherer[J any](most int, wait time.Duration) *Gatherer[J] {
	return &Gatherer[J]{Jobs: make(chan J), most: most, wait: wait}
}

// Next is the next group: it is called when the one before is done. nil if stop is closed.
func (g *Gatherer[J]) Next(stop <-chan struct{}) []J {
	took := time.Since(g.began)
	select {
	case j := <-g.Jobs:
		group := g.more(j, min(took/4, g.wait))
		g.latest, g.began = len(group), time.Now()
		return group
	case <-stop:
		return nil
	}
}

// more are the jobs that have come, j first. Where several were answered just now their callers are likely to come again at once: those
// are waited for a little, or they would wait for all of this group, and the next, half as large, would cost as much.
func (g *Gatherer[J]) more(j J, most time.Duration) []J {
	group := g.there([]J{j})
	if g.latest < 2 {
		return group
	}
	over := time.NewTimer(most)
	defer over.Stop()
	for full := min(len(group)+g.latest, g.most); len(group) < full; group = g.there(group) {
		select {
		case j := <-g.Jobs:
			group = append(group, j)
		case <-over.C:
			return group
		}
	}
	return group
}

// there adds jobs whose callers wait.
func (g *Gatherer[J]) there(group []J) []J {
	for len(group) < g.most {
		select {
		case j := <-g.Jobs:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}
