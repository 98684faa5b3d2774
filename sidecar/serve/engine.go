package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// An engine stores deliveries, and answers under idempotency keys.
type engine interface {
	delivery.Queue
	delivery.Answers
}

// openDeliveries opens the deliveries' store. If a database is unreachable, weir starts and refuses deliveries until it
// is reachable. A database with the wrong schema is an error.
func (s *Server) openDeliveries(c *config.Deliveries) (engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	if !c.InFleet() {
		return s.openFile(ctx, c)
	}
	e, err := newFleetEngine(c, s.with.Env)
	if err != nil {
		return nil, err
	}
	if err = e.Check(ctx); err == nil {
		return e, nil
	}
	_, is := errors.AsType[*postgres.SchemaError](err)
	_, isAWS := errors.AsType[*dynamosqs.SchemaError](err)
	if is || isAWS {
		return nil, errors.Join(err, e.Close())
	}
	s.troubles.note(withDeliveries, "", databaseHelp, err)
	s.tells.failed("", "deliveries cannot be opened", "")
	s.absent = e
	return e, nil
}

const databaseHelp = "direct calls are served; requests for later delivery get 503 until the deliveries' store is reachable, which weir checks every 5 seconds"

// awaitDatabase waits until a database is reachable that was unreachable at the start, and then ends the problem
// report.
func (s *Server) awaitDatabase(ctx context.Context) {
	for clock.System.Sleep(ctx, reopenEvery) == nil {
		bounded, cancel := context.WithTimeout(ctx, opening)
		err := s.absent.Check(bounded)
		cancel()
		if ctx.Err() == nil {
			s.troubles.note(withDeliveries, "", databaseHelp, err)
		}
		if err == nil {
			return
		}
	}
}

// fileOptions returns the options of a SQLite file.
func fileOptions(c *config.Deliveries) sqlite.Options {
	return sqlite.Options{Keep: c.Keep, KeepDead: c.KeepDead, MaxStored: c.MaxStored, MaxSize: c.MaxSize}
}

// OpenDeliveries opens the existing deliveries' store of a configuration for an operator. Without changes, a file is
// opened read-only.
func OpenDeliveries(ctx context.Context, c *config.Deliveries, env func(string) (string, bool), changes bool) (delivery.Queue, error) {
	switch {
	case c == nil:
		return nil, errors.New("the configuration has no deliveries")
	case !c.InFleet() && !changes:
		return sqlite.OpenToRead(ctx, c.File)
	case !c.InFleet():
		if _, err := os.Stat(c.File); err != nil { // Open would create an empty file
			return nil, fmt.Errorf("deliveries' file: %w", err)
		}
		return sqlite.Open(ctx, c.File, fileOptions(c))
	}
	e, err := newFleetEngine(c, env)
	if err != nil {
		return nil, err
	}
	if err = e.Check(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// A fleetEngine is an engine that processes share.
type fleetEngine interface {
	engine
	Init(ctx context.Context) (made bool, err error)
	Check(ctx context.Context) error
}

func newFleetEngine(c *config.Deliveries, env func(string) (string, bool)) (fleetEngine, error) {
	if c.AWS != nil {
		return newAWSDeliveries(c)
	}
	return newPostgres(c, env)
}

func newPostgres(c *config.Deliveries, env func(string) (string, bool)) (*postgres.Store, error) {
	o := postgres.Options{URL: c.Postgres.URL, Connections: c.Postgres.Connections, Unprepared: c.Postgres.Pooler, Keep: c.Keep, KeepDead: c.KeepDead, MaxStored: c.MaxStored, MaxSize: c.MaxSize}
	if name := c.Postgres.PasswordEnv; name != "" {
		var ok bool
		if o.Password, ok = env(name); !ok {
			return nil, fmt.Errorf("deliveries: postgres: password_env: environment variable %s is not set; set it before weir starts", name)
		}
	}
	return postgres.New(o)
}

// process names this process for people.
func process() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// poll returns how often a process of a fleet checks for deliveries that others have left, with jitter.
func poll() time.Duration { return 1500*time.Millisecond + rand.N(time.Second) }

// initDeliveries creates the fleet's store of deliveries.
func initDeliveries(ctx context.Context, out io.Writer, c *config.Deliveries, o Options) error {
	e, err := newFleetEngine(c, o.Env)
	if err != nil {
		return err
	}
	defer e.Close()
	made, err := e.Init(ctx)
	switch {
	case err != nil:
		return err
	case c.AWS != nil && made:
		fmt.Fprintln(out, "the deliveries' table and queue are ready: the missing ones were created")
	case c.AWS != nil:
		fmt.Fprintln(out, "the deliveries' table and queue are ready: nothing had to be changed")
	case made:
		fmt.Fprintln(out, "the deliveries' database is ready: its tables were created")
	default:
		fmt.Fprintln(out, "the deliveries' database is ready: nothing had to be changed")
	}
	return initBodies(ctx, out, c)
}

// tryDeliveries returns the trials that check the deliveries' store.
func tryDeliveries(file *config.File, o Options) []trial {
	c := file.Deliveries
	if c == nil {
		return nil
	}
	tries := append(triesBodies(c), triesRequests(c.Requests)...)
	switch {
	case c.AWS != nil:
		return append(tries, tryAWSDeliveries(c))
	case c.Postgres == nil:
		return append(tries, trial{"deliveries file", func(ctx context.Context) (string, error) { return lookAtDeliveries(ctx, c.File) }})
	}
	return append(tries, trial{"deliveries postgres", func(ctx context.Context) (string, error) {
		p, err := newPostgres(c, o.Env)
		if err != nil {
			return "", err
		}
		defer p.Close()
		if err := p.Check(ctx); err != nil {
			return "", err
		}
		begin := time.Now()
		held, err := p.Snapshot(ctx)
		if err != nil {
			return "", err
		}
		said := fmt.Sprintf("answers in %v, its tables exist", time.Since(begin).Round(100*time.Microsecond))
		if held > longHeld {
			return "", &warning{said: said, warns: []string{fmt.Sprintf("a transaction has been open for %v: until it ends, PostgreSQL cannot remove dead rows, and claims take longer; find it in pg_stat_activity", held.Round(time.Second))}}
		}
		return said, nil
	}})
}

// lookAtDeliveries checks a file without changing it. A running weir may have it open.
func lookAtDeliveries(ctx context.Context, name string) (string, error) {
	f, err := sqlite.Look(ctx, name)
	switch {
	case err != nil:
		return "", err
	case f.Held:
		return "", &warning{said: name + " can be read and written", warns: []string{"a running weir has it open; a second one cannot start with it"}}
	case f.Latest:
		return fmt.Sprintf("%s can be read and written; its schema has version %d", name, f.Version), nil
	case f.Version > 0:
		return fmt.Sprintf("%s can be read and written; its schema has version %d, which weir serve upgrades", name, f.Version), nil
	}
	return name + " can be created", nil
}

// longHeld is how long a snapshot may be held without a warning.
const longHeld = time.Minute
