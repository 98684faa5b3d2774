package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed1158cd35/weir/delivery"
)

// A step is a statement with a function that reads each row that it returns. The function is nil if the rows do not
// matter.
type step struct {
	query string
	args  []any
	row   func(values) error
}

// transact sends statements together as one transaction, in one round trip. If it returns nil, they are committed.
func (s *Store) transact(ctx context.Context, steps ...step) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.send(ctx, steps...)
}

// send is transact without the check of the database.
func (s *Store) send(ctx context.Context, steps ...step) error {
	sent := make([]statement, len(steps))
	for i, st := range steps {
		if err := sent[i].encode(st.args); err != nil {
			return err
		}
	}
	c, err := s.pool.take(ctx)
	if err != nil {
		return err // nothing was sent
	}
	defer s.pool.put(c)
	all := c.StartPipeline(ctx)
	for i := range steps {
		sent[i].send(c, all, steps[i].query, s.o.Unprepared)
	}
	if err = all.Sync(); err == nil {
		err = c.answers(all, steps, sent)
	} else {
		c.unname(sent) // ctx ended before anything was sent
	}
	// The commit comes after the last row, so Close returns its error.
	if closed := all.Close(); err == nil {
		err = closed
	}
	if stale(err) {
		hangUp([]*conn{c})
	}
	if c.IsClosed() && ctx.Err() == nil {
		s.pool.drop() // the idle ones have the same server, or the same statements
	}
	return explain(err)
}

// A statement is a step that is being sent.
type statement struct {
	values  [][]byte
	oids    []uint32
	formats []int16
	named   string // the name under which it is being prepared, until the database confirms it
}

var binaryRows = []int16{1}

func (st *statement) encode(args []any) error {
	for _, v := range args {
		a, err := encode(v)
		if err != nil {
			return err
		}
		st.values, st.oids, st.formats = append(st.values, a.value), append(st.oids, a.oid), append(st.formats, 1)
	}
	return nil
}

func (st *statement) send(c *conn, to *pgconn.Pipeline, query string, unprepared bool) {
	name, known := c.prepared[query]
	switch {
	case unprepared, !known && len(c.prepared) >= mostPrepared:
		to.SendQueryParams(query, st.values, st.oids, st.formats, binaryRows)
		return
	case !known:
		c.names++
		name = fmt.Sprint("weir_", c.names)
		st.named, c.prepared[query] = name, name
		to.SendPrepare(name, query, st.oids)
	}
	to.SendQueryPrepared(name, st.values, st.formats, binaryRows)
}

// answers reads the results of statements.
func (c *conn) answers(from *pgconn.Pipeline, steps []step, sent []statement) error {
	for i, st := range steps {
		if sent[i].named != "" {
			if _, err := from.GetResults(); err != nil {
				c.unname(sent[i:])
				return err
			}
		}
		if err := st.read(from); err != nil {
			c.unname(sent[i+1:])
			return err
		}
	}
	return nil
}

// unname forgets the names of statements that the database has not prepared. After an error it skips the rest.
func (c *conn) unname(sent []statement) {
	for query, name := range c.prepared {
		if slices.ContainsFunc(sent, func(st statement) bool { return st.named == name }) {
			delete(c.prepared, query)
		}
	}
}

func (st *step) read(from *pgconn.Pipeline) error {
	is, err := from.GetResults()
	if err != nil {
		return err
	}
	rows, ok := is.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("the answer to a statement is a %T", is)
	}
	for rows.NextRow() {
		if st.row == nil {
			continue
		}
		if err := st.row(rows.Values()); err != nil {
			return err
		}
	}
	_, err = rows.Close()
	return err
}

// An unsureError means that the transaction may be committed or not.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

func (e unsureError) Is(target error) bool { return target == delivery.ErrUncertain }

// explain classifies an error. If the database refused the transaction, or before anything was sent, the transaction is
// not stored. After any other error the outcome is unknown. This includes the end of a connection, which may come after
// the commit.
func explain(err error) error {
	var refused *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && full(refused):
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR", errors.As(err, &connect), pgconn.SafeToRetry(err):
		return err
	}
	return unsureError{err}
}

func full(e *pgconn.PgError) bool { return e.Code == "53100" || e.Code == "53200" }

// clashed reports whether the database rolled back the transaction because of a conflict. A repetition may succeed
// immediately.
func clashed(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40P01" || refused.Code == "40001" || stale(err))
}

func taken(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "23505"
}

// stale reports whether a connection has prepared statements that no longer match the tables, or leads to a server that
// is now read-only.
func stale(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	return refused.Code == "0A000" && strings.Contains(refused.Message, "cached plan") || refused.Code == "25006"
}

// unreachable reports whether a transaction was not sent, or was refused, because the server is unavailable now.
func unreachable(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return !errors.Is(err, delivery.ErrUncertain)
	}
	class := refused.Code[:min(2, len(refused.Code))]
	return class == "57" || class == "53" || class == "08" || class == "58" || class == "25"
}
