package postgres

import (
	"context"
	"time"
)

// Plans is how often the database has planned for the numbers that it was given, and how often it has used a plan for any.
func (s *Store) Plans(ctx context.Context) (anew, once int64, err error) {
	err = s.look(ctx, step{query: "SELECT sum(custom_plans)::bigint, sum(generic_plans)::bigint FROM pg_prepared_statements", row: func(r values) error { return r.scan(&anew, &once) }})
	return anew, once, err
}

// AwaitsAccepts has ends wait for accepts as they do while some are under way, and says how many wait.
func (s *Store) AwaitsAccepts() (waiting func() int) {
	s.rides.begins()
	return func() (n int) {
		s.ends.Waiting(func(*job[*ending]) bool { n++; return false })
		return n
	}
}

// Dials is how long a connection to a database is waited for.
func Dials(at string) (time.Duration, error) {
	c, err := configure(Options{URL: at})
	if err != nil {
		return 0, err
	}
	return c.ConnectTimeout, nil
}
