package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A SchemaError means that the database cannot be used as it is, and that waiting will not help.
type SchemaError struct{ Why string }

func (e *SchemaError) Error() string { return e.Why }

// Check returns an error if the database is unavailable or unsuitable. A *SchemaError means that an operator must
// change something.
func (s *Store) Check(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return fmt.Errorf("deliveries in %s: %w", s.where, err)
	}
	return nil
}

func (s *Store) check(ctx context.Context) error {
	is, sync, isolation := 0, "", ""
	err := s.send(ctx, step{query: `SELECT version, current_setting('synchronous_commit'), current_setting('default_transaction_isolation') FROM weir_schema`, row: func(r values) error {
		return r.scan(&is, &sync, &isolation)
	}})
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == "42P01": // undefined table
		return &SchemaError{"it has no tables for deliveries: run weir store init"}
	case errors.As(err, &refused) && (refused.Code[:2] == "28" || refused.Code == "3D000" || refused.Code == "42501"):
		return &SchemaError{refused.Message}
	case err != nil:
		return err
	case is < version:
		return &SchemaError{fmt.Sprintf("its tables have version %d, this weir needs %d: run weir store init", is, version)}
	case is > version:
		return &SchemaError{fmt.Sprintf("its tables have version %d, this weir supports %d: use the version that created them, or a newer one", is, version)}
	case sync == "off":
		return &SchemaError{"synchronous_commit is off there: stored deliveries would be lost when the server crashes"}
	case isolation != "read committed":
		return &SchemaError{"default_transaction_isolation is " + isolation + " there: set it to read committed for weir's role"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	return nil
}

// usable returns nil if Check has succeeded before, and otherwise checks.
func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready {
		return nil
	}
	return s.check(ctx)
}

// Init creates or upgrades the tables if necessary. made reports whether it changed anything. Concurrent calls do it
// only once. Init also recounts what each tenant stores, which corrects the numbers after rows were deleted manually.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	if made, err = s.init(ctx); err == nil {
		err = s.check(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("deliveries in %s: %w", s.where, err)
	}
	return made, nil
}

func (s *Store) init(ctx context.Context) (made bool, err error) {
	c, err := s.pool.take(ctx)
	if err != nil {
		return false, err
	}
	defer s.pool.put(c)
	run := func(text string) ([]*pgconn.Result, error) { return c.Exec(ctx, text).ReadAll() }
	all, err := run(fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d); SELECT to_regclass('weir_schema') IS NOT NULL", number("schema")))
	script, newer := "", false
	if err == nil && string(all[2].Rows[0][0]) == "f" {
		script = schema + "INSERT INTO weir_schema(version) VALUES (1);" + strings.Join(upgrades[:], "")
	} else if err == nil {
		if all, err = run("SELECT version FROM weir_schema"); err == nil {
			is, _ := strconv.Atoi(string(all[0].Rows[0][0]))
			script, newer = strings.Join(upgrades[min(max(is-1, 0), len(upgrades)):], ""), is > version
		}
	}
	if made = script != ""; made {
		script += fmt.Sprintf("UPDATE weir_schema SET version = %d;", version)
	}
	if err == nil && !newer {
		_, err = run("SET LOCAL statement_timeout = 0;" + script + recount + "COMMIT")
	}
	if err != nil || newer {
		_, undo := run("ROLLBACK")
		return false, errors.Join(err, undo)
	}
	return made, nil
}

// Snapshot returns the age of the oldest snapshot that a client of the database holds. While it is held, the database
// cannot remove old versions of rows, which slow down queries.
func (s *Store) Snapshot(ctx context.Context) (held time.Duration, err error) {
	err = s.look(ctx, step{query: `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)) * 1000, 0)::bigint FROM pg_stat_activity
		WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
		row: func(rows values) error {
			var ms int64
			err := rows.scan(&ms)
			held = time.Duration(ms) * time.Millisecond
			return err
		}})
	return held, err
}
