package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"

	"github.com/seed1158cd35/weir/delivery"
)

// A conn is a connection that one goroutine uses. It calls the driver directly: the work of package sql, which supports
// many connections and any type, takes as long per statement as a small statement does.
type conn struct {
	is   driver.Conn
	made map[string]statement // by text; there are few texts
	args []driver.NamedValue  // of the running statement
}

// A statement is a prepared statement that is kept.
type statement interface {
	driver.StmtExecContext
	driver.StmtQueryContext
	Close() error
}

func connect(ctx context.Context, source string) (*conn, error) {
	at, err := sqlite.NewConnector(source)
	if err != nil {
		return nil, err
	}
	is, err := at.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{is: is, made: make(map[string]statement)}, nil
}

func (c *conn) close() error {
	for _, s := range c.made {
		_ = s.Close()
	}
	clear(c.made)
	return c.is.Close()
}

// script runs statements once.
func (c *conn) script(text string) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.ExecContext(context.Background(), nil)
	return err
}

func (c *conn) prepare(query string) (statement, error) {
	s, err := c.is.Prepare(query)
	if err != nil {
		return nil, err
	}
	return s.(statement), nil
}

func (c *conn) prepared(query string) (statement, error) {
	if s := c.made[query]; s != nil {
		return s, nil
	}
	s, err := c.prepare(query)
	if err == nil {
		c.made[query] = s
	}
	return s, err
}

func (c *conn) exec(query string, args []any) (driver.Result, error) {
	s, bound, err := c.ready(query, args)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), bound)
}

// query reads rows. They must be closed before the next statement runs.
func (c *conn) query(query string, args []any) (*found, error) {
	s, bound, err := c.ready(query, args)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(context.Background(), bound)
	if err != nil {
		return nil, err
	}
	return &found{rows: rows, row: make([]driver.Value, len(rows.Columns()))}, nil
}

// ready returns a prepared statement and its arguments.
func (c *conn) ready(query string, args []any) (statement, []driver.NamedValue, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, nil, err
	}
	bound, err := c.bound(args)
	return s, bound, err
}

// bound returns arguments in the driver's form. They are valid until the next statement runs.
func (c *conn) bound(args []any) ([]driver.NamedValue, error) {
	c.args = c.args[:0]
	for i, arg := range args {
		if n, ok := arg.(int); ok {
			arg = int64(n)
		} else if !driver.IsValue(arg) {
			return nil, fmt.Errorf("argument %d of a statement is a %T", i+1, arg)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args, nil
}

// found is rows with the methods of sql.Rows.
type found struct {
	rows driver.Rows
	row  []driver.Value
	err  error
}

func (f *found) Next() bool {
	if f.err = f.rows.Next(f.row); errors.Is(f.err, io.EOF) {
		f.err = nil
		return false
	}
	return f.err == nil
}

func (f *found) Scan(to ...any) error {
	for i, to := range to {
		if err := scan(to, f.row[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func (f *found) Err() error   { return f.err }
func (f *found) Close() error { return f.rows.Close() }

// scan assigns a value of a row. Byte slices are shared with the row.
func scan(to any, v driver.Value) error {
	if s, ok := to.(sql.Scanner); ok {
		return s.Scan(v)
	}
	ok := false
	switch to := to.(type) {
	case *int64:
		*to, ok = v.(int64)
	case *int:
		var n int64
		n, ok = v.(int64)
		*to = int(n)
	case *bool:
		var n int64
		n, ok = v.(int64)
		*to = n != 0
	case *string:
		*to, ok = text(v)
	case *delivery.Status:
		var s string
		s, ok = text(v)
		*to = delivery.Status(s)
	case *delivery.Reason:
		var s string
		s, ok = text(v)
		*to = delivery.Reason(s)
	case *[]byte:
		if *to, ok = v.([]byte); !ok {
			var s string
			s, ok = text(v)
			*to, ok = []byte(s), ok || v == nil
		}
	}
	if !ok {
		return fmt.Errorf("a %T is no %T", v, to)
	}
	return nil
}

// text converts a value to a string. Files that people edited may contain text or a blob.
func text(v driver.Value) (s string, ok bool) {
	if b, is := v.([]byte); is {
		return string(b), true
	}
	s, ok = v.(string)
	return s, ok
}
