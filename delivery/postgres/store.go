// Package postgres keeps deliveries in PostgreSQL, for a fleet of weirs that share them. Init makes the tables. What
// many callers ask for at once goes to the database together, in one statement and one transaction.
//
// A change that several rows take part in has one order of locks: those of lines and of idempotency keys (advisory ones, by
// number), then rows (by number, or such as nobody has locked). So changes wait for each other and never in a circle. Ends that go with
// accepts take what nobody has locked.
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

// Options say where deliveries are kept, and how. Without a URL there is no default.
type Options struct {
	URL         string        // postgres://user@host:5432/database; TLS by sslmode, as libpq has it
	Password    string        // "" for what the URL, or ~/.pgpass, says
	Connections int           // at most; 0 means 8
	Unprepared  bool          // no statement is prepared and nothing is set for a connection: for pgbouncer, pooling transactions
	Keep        time.Duration // how long what was delivered is kept; 0 means 7 days
	KeepDead    time.Duration // how long dead letters are kept; 0 means 30 days
	MaxStored   int64         // deliveries that are stored at most, whatever their status; 0 means 10 million. A named tenant may have half of them
	MaxSize     int64         // bytes of their requests; 0 means 64 GiB. A named tenant may have half of them
}

// A Store keeps deliveries in a database. Time is that of the database.
type Store struct {
	o     Options
	where string // the database, for people: without its password
	pool  *pool
	home  int64 // names this store among those that share the database
	begun int64 // the token of what this store claims as it stores it

	accepts *groups[*acceptance]
	claims  *groups[*claiming]
	ends    *groups[*ending]
	rides   rides
	usage   usage

	mu     sync.Mutex
	ready  bool          // the tables are there, in a version that this weir knows
	among  fleet         // as of the latest sweep
	unsure []unsureClaim // of which nobody knows whether they were stored
}

var _ delivery.Queue = (*Store)(nil)

// bounds of what one ask of the database takes.
const (
	accepting = 950 * time.Millisecond // whoever hands something in waits for a second
	asking    = 5 * time.Second
	dialling  = time.Second // unless the URL says connect_timeout
)

// New is a store of a database, which need not be there yet: see Check.
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
		"enable_seqscan":  "off",                // what the database knows of a queue's tables is always of before: they may have been empty
		"plan_cache_mode": "force_generic_plan", // or it plans anew each time, as it deems a plan for a few numbers cheaper than one for any
	} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = v
		}
	}
	return c, nil
}

// CheckURL says what is wrong with the URL of a database. It connects to nothing.
func CheckURL(at string) error {
	_, err := configure(Options{URL: at})
	return err
}

// badURL says why without the URL, which may have a password.
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

// Close waits for what is being stored, and ends the connections. Others hear that this store has left.
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
