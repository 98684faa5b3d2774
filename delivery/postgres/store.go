// Package postgres stores deliveries in PostgreSQL, which several processes may share. Init creates the tables.
// Concurrent calls are sent to the database together, in one statement and one transaction.
//
// All transactions take locks in the same order, to avoid deadlocks: first the advisory locks of order keys and
// idempotency keys, by number, then rows, by seq or skipping locked ones. Ends that join accepts skip locked rows.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed1158cd35/weir/delivery"
)

// Options are the settings of a Store. URL is required.
type Options struct {
	URL         string        // postgres://user@host:5432/database; sslmode controls TLS, as in libpq
	Password    string        // if empty, the password of the URL or of ~/.pgpass is used
	Connections int           // maximum number; 0 means 8
	Unprepared  bool          // prepare no statements and set no connection parameters, as pgbouncer with transaction pooling requires
	Keep        time.Duration // how long completed deliveries are kept; 0 means 7 days
	KeepDead    time.Duration // how long dead letters are kept; 0 means 30 days
	MaxStored   int64         // maximum number of stored deliveries of any status; 0 means 10 million. A named tenant may have half of them
	MaxSize     int64         // maximum total size of their requests in bytes; 0 means 64 GiB. A named tenant may use half of it
}

// A Store stores deliveries in a database. It uses the clock of the database. A Store is safe for concurrent use.
type Store struct {
	o     Options
	where string // describes the database for people, without its password
	pool  *pool
	home  int64 // identifies this store among the stores that share the database
	begun int64 // the token of claims that are made with an insert

	accepts *groups[*acceptance]
	claims  *groups[*claiming]
	ends    *groups[*ending]
	rides   rides
	usage   usage

	mu     sync.Mutex
	ready  bool          // the tables exist in a supported version
	among  fleet         // as of the latest sweep
	unsure []unsureClaim // claims that may be stored or not
}

var _ delivery.Queue = (*Store)(nil)

// Timeouts of requests to the database.
const (
	accepting = 950 * time.Millisecond // callers wait for one second
	asking    = 5 * time.Second
	dialling  = time.Second // unless the URL contains connect_timeout
)

// New returns a store for a database, which need not be available yet: see Check.
func New(o Options) (*Store, error) {
	o.Keep, o.KeepDead = cmp.Or(o.Keep, 7*24*time.Hour), cmp.Or(o.KeepDead, 30*24*time.Hour)
	o.MaxStored, o.MaxSize = cmp.Or(o.MaxStored, 10_000_000), cmp.Or(o.MaxSize, 64<<30)
	c, err := configure(o)
	if err != nil {
		return nil, fmt.Errorf("the url of the deliveries' database: %w", err)
	}
	s := &Store{o: o, home: rand.Int64(), begun: rand.Int64(), where: fmt.Sprintf("%s at %s:%d", c.Database, c.Host, c.Port)}
	s.pool = newPool(c, cmp.Or(o.Connections, 8))
	s.ends = newGroups(s.endAll, s.wait)
	s.claims = newGroups(s.claimAll, nil)
	s.accepts = newGroups(s.acceptAll, nil)
	return s, nil
}

func configure(o Options) (*pgconn.Config, error) {
	c, err := pgconn.ParseConfig(o.URL)
	if err != nil {
		return nil, badURL(err)
	}
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, dialling)
	if o.Password != "" {
		c.Password = o.Password
	}
	if o.Unprepared {
		return c, nil
	}
	for name, v := range map[string]string{
		"application_name": "weir", "synchronous_commit": "on", "default_transaction_isolation": "read committed",
		"statement_timeout": "10s", "idle_in_transaction_session_timeout": "10s", "jit": "off",
		"enable_seqscan":  "off",                // statistics of a queue's tables are always outdated: the tables may have been empty
		"plan_cache_mode": "force_generic_plan", // the planner would otherwise replan each time, because it considers a plan for the given values cheaper
	} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = v
		}
	}
	return c, nil
}

// CheckURL returns an error if the URL of a database is invalid. It does not connect.
func CheckURL(at string) error {
	_, err := configure(Options{URL: at})
	return err
}

// badURL returns the cause without the URL, which may contain a password.
func badURL(err error) error {
	why := err
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		if why = errors.Unwrap(parse); why == nil {
			return errors.New("is not a PostgreSQL URL")
		}
	}
	if _, ok := errors.AsType[*url.Error](why); ok {
		return errors.New("is no URL")
	}
	return why
}

// Close waits for pending operations and closes the connections. It also removes this store from the list of members.
func (s *Store) Close() error {
	if s.fleetNow().met {
		ctx, cancel := context.WithTimeout(context.Background(), accepting)
		defer cancel()
		_ = s.transact(ctx, step{query: "DELETE FROM weir_member WHERE home = $1::bigint", args: []any{s.home}})
	}
	s.accepts.close()
	s.claims.close()
	s.ends.close()
	s.pool.close()
	return nil
}
