package postgres

import "context"

// Plans is how often the database has planned for the numbers that it was given, and how often it has used a plan for any.
func (s *Store) Plans(ctx context.Context) (anew, once int64, err error) {
	err = s.look(ctx, step{query: "SELECT sum(custom_plans)::bigint, sum(generic_plans)::bigint FROM pg_prepared_statements", row: func(r values) error { return r.scan(&anew, &once) }})
	return anew, once, err
}
