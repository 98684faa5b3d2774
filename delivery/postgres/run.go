package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed1158cd35/weir/delivery"
)

// A step is a statement, and what reads a row that it returns; nil for a statement of which no row matters.
type step struct {
	query string
	args  []any
	row   func(pgx.Rows) error
}

// transact sends statements together, as one transaction; once it returns without an error they are committed. It waits for one answer, however
// many they are.
func (s *Store) transact(ctx context.Context, steps ...step) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.send(ctx, steps...)
}

// send is transact for a database of which nothing is known yet.
func (s *Store) send(ctx context.Context, steps ...step) error {
	var b pgx.Batch
	for _, st := range steps {
		b.Queue(st.query, st.args...)
	}
	answers := s.pool.SendBatch(ctx, &b)
	err := error(nil)
	for i := 0; i < len(steps) && err == nil; i++ {
		err = steps[i].read(answers)
	}
	// The commit comes after the last row: what went wrong with it is heard here.
	if closed := answers.Close(); err == nil {
		err = closed
	}
	return explain(err)
}

func (st *step) read(answers pgx.BatchResults) error {
	if st.row == nil {
		_, err := answers.Exec()
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := st.row(rows); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// An unsureError means that nobody knows whether a transaction was committed.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

func (e unsureError) Is(target error) bool { return target == delivery.ErrUncertain }

// explain says what an error leaves open: what the database refuses is not stored, nor what was never sent. Of anything
// else nobody knows.
func explain(err error) error {
	var refused *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && full(refused):
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	case errors.As(err, &refused), errors.As(err, &connect), pgconn.SafeToRetry(err):
		return err
	case strings.Contains(err.Error(), "closed pool"):
		return fmt.Errorf("%w: %w", delivery.ErrClosed, err)
	}
	return unsureError{err}
}

func full(e *pgconn.PgError) bool { return e.Code == "53100" || e.Code == "53200" }

// clashed reports whether the database undid a transaction for the sake of another one: the same may work at once.
func clashed(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40P01" || refused.Code == "40001" || refused.Code == "0A000" && strings.Contains(refused.Message, "cached plan"))
}

// unreachable reports whether nothing was sent, or a transaction was refused, as the server is not to be had just now.
func unreachable(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return !errors.Is(err, delivery.ErrUncertain)
	}
	class := refused.Code[:min(2, len(refused.Code))]
	return class == "57" || class == "53" || class == "08" || class == "58" || class == "25"
}
