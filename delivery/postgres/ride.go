package postgres

import (
	"errors"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// While deliveries arrive continually, ends of attempts join the next accepts: one transaction, one response and one
// flush of the log instead of two. They do not delay the accepts, because such an end skips rows that are locked. An
// end that cannot be recorded in this way is recorded separately, as are all ends while no accepts arrive.

// rides lets ends wait for accepts that they can join.
type rides struct {
	mu    sync.Mutex
	under bool          // accepts are running
	ended time.Time     // when the last ones ended
	next  chan struct{} // closed when the next ones begin
}

const (
	soon    = 5 * time.Millisecond  // how long after accepts further ones are likely
	longest = 25 * time.Millisecond // that an end waits for accepts
)

// begins notes that accepts begin. ends notes that they have ended.
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

// wait waits for accepts that are likely to begin. It returns false if none began, if there are enough ends for a
// group, or if one of them cannot join accepts.
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

// enough returns a function that is called for each end. It returns true at the first end that must not wait for
// accepts.
func enough() func(*job[*ending]) bool {
	n := 0
	return func(j *job[*ending]) bool {
		n++
		return n == mostJobs || !j.is.rides()
	}
}

// rides reports whether an end may join accepts.
func (e *ending) rides() bool { return !e.stays && !e.Again && e.well() }

// riders takes the ends that join the next accepts.
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

// arrive gives ends their results. Ends that were not recorded are queued again to be recorded separately.
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
