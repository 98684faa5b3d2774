package sqlite

import (
	"fmt"
	"testing"
)

// Pragma is a setting of the connection that writes.
func (s *Store) Pragma(t *testing.T, name string) (value string) {
	t.Helper()
	err := s.write.do(t.Context(), false, func(c *change) error {
		_, err := c.row("PRAGMA "+name, nil, &value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// Hold reads until it is released, as somebody does with another program.
func (s *Store) Hold(t *testing.T) (release func()) {
	t.Helper()
	tx, err := s.read.Begin()
	if err == nil {
		err = tx.QueryRow("SELECT count(*) FROM delivery").Scan(new(int))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// Plan is how a statement is carried out.
func (s *Store) Plan(t *testing.T, query string) (plan string) {
	t.Helper()
	rows, err := s.read.Query("EXPLAIN QUERY PLAN "+query, make([]any, countOf(query))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c any
		var step string
		if err := rows.Scan(&a, &b, &c, &step); err != nil {
			t.Fatal(err)
		}
		plan += fmt.Sprintf("%s; ", step)
	}
	return plan
}

func countOf(query string) (n int) {
	for _, c := range query {
		if c == '?' {
			n++
		}
	}
	return n
}
