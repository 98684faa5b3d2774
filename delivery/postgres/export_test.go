package postgres

import (
	"context"
	"time"
)

// Plans returns how often the database made a plan for given values, and how often it used a generic plan.
func (s *Store) Plans(ctx context.Context) (anew, once int64, err error) {
	err = s.look(ctx, step{query: "SELECT sum(custom_plans)::bigint, sum(generic_plans)::bigint FROM pg_prepared_statements", row: func(r values) error { return r.scan(&anew, &once) }})
	return anew, once, err
}

// AwaitsAccepts makes ends wait as if accepts were running. waiting returns how many ends wait.
func (s *Store) AwaitsAccepts() (waiting func() int) {
	s.rides.begins()
	return func() (n int) {
		s.ends.Waiting(func(*job[*ending]) bool { n++; return false })
		return n
	}
}

// AddUnsure adds claims of no delivery whose outcome is unknown.
func (s *Store) AddUnsure(n int) {
	for range n {
		s.addUnsure(unsureClaim{})
	}
}

// Unsure returns how many claims have an unknown outcome.
func (s *Store) Unsure() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsure)
}

// Dials returns the connect timeout for a URL.
func Dials(at string) (time.Duration, error) {
	c, err := configure(Options{URL: at})
	if err != nil {
		return 0, err
	}
	return c.ConnectTimeout, nil
}
