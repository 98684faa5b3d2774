package postgres

import (
	"errors"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Where deliveries come all the time their ends go with the next accepts: one transaction, one answer and one flush of the log in place of two.
// They are in nobody's way there, as such an end takes no lock that it would have to wait for. What does not work out that way goes by
// itself, as ends do when nothing is accepted.

// rides has ends wait for accepts that take them with them.
type rides struct {
	mu    sync.Mutex
	under bool          // accepts are under way
	ended time.Time     // when the latest were over
	next  chan struct{} // closed when the next begin
}

const (
	soon    = 5 * time.Millisecond  // after accepts others are likely to follow
	longest = 25 * time.Millisecond // that an end waits for some
)

// begins notes that accepts begin, and ends that they are over.
func (r *rides) begins() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under = true; r.next != nil {
		close(r.next)
		r.next = nil
	}
}

func (r *rides) ends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under, r.ended = false, time.Now()
}

// wait for accepts that are likely to begin; false if none did, or if there is what does not go with any, or enough for a group.
func (s *Store) wait() bool {
	r := &s.rides
	for begin := time.Now(); !s.ends.Waiting(enough()); {
		r.mu.Lock()
		wait := soon
		if !r.under {
			wait = time.Until(r.ended.Add(soon))
		}
		if wait <= 0 || time.Since(begin) > longest {
			r.mu.Unlock()
			return false
		}
		if r.next == nil {
			r.next = make(chan struct{})
		}
		next := r.next
		r.mu.Unlock()
		over := time.NewTimer(wait)
		select {
		case <-next:
			over.Stop()
			return true
		case <-over.C:
		}
	}
	return false
}

// enough looks for what does not wait for accepts, end by end.
func enough() func(*job[*ending]) bool {
	n := 0
	return func(j *job[*ending]) bool {
		n++
		return n == mostJobs || !j.is.rides()
	}
}

// rides reports whether an end may go with accepts.
func (e *ending) rides() bool { return !e.stays && !e.Again && e.well() }

// riders are ends that go with accepts.
func (s *Store) riders() []*job[*ending] {
	seen := make(map[int64]bool)
	return s.ends.TakeSome(func(j *job[*ending]) bool {
		e := j.is
		if !e.rides() || seen[e.Seq] {
			return false
		}
		seen[e.Seq] = true
		return true
	})
}

// ride is their step.
func (s *Store) ride(all []*job[*ending]) []step {
	if len(all) == 0 {
		return nil
	}
	ends := make([]*ending, len(all))
	for i, j := range all {
		ends[i] = j.is
	}
	return []step{s.complete(ends, completeFree)}
}

// arrive tells ends how it went. Those that were not recorded go by themselves.
func (s *Store) arrive(all []*job[*ending], err error) {
	for _, j := range all {
		e := j.is
		if err == nil && e.kept {
			close(j.done)
			continue
		}
		e.stays, e.Again = true, e.Again || errors.Is(err, delivery.ErrUncertain)
		s.ends.Add(j)
	}
}
