package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Pragma returns a setting of the writing connection.
func (s *Store) Pragma(t *testing.T, name string) (value string) {
	t.Helper()
	err := s.write.do(t.Context(), false, func(c *change) error {
		rows, err := c.w.query("PRAGMA " + name)
		if err == nil && rows.Next() {
			value = fmt.Sprint(rows.row[0])
		}
		if err == nil {
			err = errors.Join(rows.Err(), rows.Close())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// SetDisk replaces the functions that read the disk's size and allocate the reserve until the test ends.
func SetDisk(t *testing.T, size func(path string) int64, reserve func(*os.File, int64) error) {
	t.Helper()
	was, took := sizeOfDisk, reserveSpace
	sizeOfDisk, reserveSpace = size, reserve
	t.Cleanup(func() { sizeOfDisk, reserveSpace = was, took })
}

// Hold keeps a read transaction open until release is called, as another program might.
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

// Plan returns the query plan of a statement.
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

// Together makes the changes of callers reach the writer as one group, in order. It requires a synctest bubble.
func (s *Store) Together(callers ...func()) {
	hold, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.write.do(context.Background(), false, func(*change) error { <-hold; return nil })
		done <- struct{}{}
	}()
	synctest.Wait()
	for _, call := range callers {
		go func() {
			call()
			done <- struct{}{}
		}()
		synctest.Wait()
	}
	close(hold)
	for range len(callers) + 1 {
		<-done
	}
}

// Do runs statements in the writer's transaction.
func (s *Store) Do(statements ...string) error {
	return s.write.do(context.Background(), false, func(c *change) error {
		for _, statement := range statements {
			if err := c.w.exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// Spoil makes statements of the writer fail until its connection is replaced.
func (s *Store) Spoil(statements ...string) error {
	return s.write.do(context.Background(), false, func(c *change) error {
		for _, statement := range statements {
			s, err := c.w.conn.prepared(statement)
			if err != nil {
				return err
			}
			c.w.conn.made[statement] = spoilt{s}
		}
		return nil
	})
}

type spoilt struct{ statement }

var errSpoilt = errors.New("the statement is spoilt")

func (spoilt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, errSpoilt
}

// Run calls f in the writer's goroutine.
func (s *Store) Run(f func()) error {
	return s.write.do(context.Background(), false, func(*change) error { f(); return nil })
}

// CountsAndRows returns the stored counts, and the counts of the rows.
func (s *Store) CountsAndRows(t *testing.T) (kept, rows string) {
	t.Helper()
	for query, to := range map[string]*string{
		"SELECT upstream, status, n FROM counts WHERE n <> 0 ORDER BY upstream, status":                       &kept,
		"SELECT upstream, status, count(*) FROM delivery GROUP BY upstream, status ORDER BY upstream, status": &rows,
	} {
		found, err := s.read.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var upstream, status string
			var n int
			if err := found.Scan(&upstream, &status, &n); err != nil {
				t.Fatal(err)
			}
			*to += fmt.Sprintf("%s/%s=%d ", upstream, status, n)
		}
	}
	return kept, rows
}

// AcceptAndFail stores a request in a change that then fails.
func (s *Store) AcceptAndFail(r delivery.Request) error {
	r.ID = delivery.NewID(time.Now())
	a := &acceptance{s: s, r: &r, print: r.Fingerprint()}
	return s.write.do(context.Background(), true, func(c *change) error {
		return errors.Join(a.do(c), errors.New("it fails"))
	})
}

// InLine is the condition of an index.
const InLine = inLine

// MakeOld creates a file with the first schema at path.
func MakeOld(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(fmt.Sprintf(schema+"PRAGMA user_version = 1; PRAGMA application_id = %d", applicationID))
	}
	if err == nil {
		_, err = db.Exec(`INSERT INTO delivery(id, tenant, holder, upstream, status, due, not_before, order_key, place, idem_key, fingerprint, correlation, accepted, changed, expires)
			VALUES ('old', '', '', 'a', 'queued', 0, 0, 'k', 1, 'key', x'00', '', 0, 0, 4102444800000); INSERT INTO request VALUES (1, 'POST', '/', '', '', x'')`)
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Version is the version of the schema.
const Version = version
