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
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// An engine stores deliveries, and answers under idempotency keys.
type engine interface {
	delivery.Queue
	delivery.Answers
	Check(ctx context.Context) error // returns an error if deliveries cannot be stored now
}

// openDeliveries returns the deliveries' store, which need not be available yet.
func (s *Server) openDeliveries(c *config.Deliveries) (engine, error) {
	if c.InFleet() {
		return newFleetEngine(c, s.with.Env)
	}
	if err := checkFile(c); err != nil {
		return nil, err
	}
	return &fileEngine{open: func(ctx context.Context) (*sqlite.Store, error) { return sqlite.Open(ctx, c.File, fileOptions(c)) }}, nil
}

// checkFile returns an error if the path of the deliveries' file belongs to something that is not a file.
func checkFile(c *config.Deliveries) error {
	if info, err := os.Stat(c.File); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("deliveries: file: %s is not a file (%s): use another path", c.File, info.Mode().Type())
	}
	return nil
}

// recheckEvery is how often weir checks a deliveries' store that is unavailable.
const recheckEvery = 5 * time.Second

const deliveriesHelp = "direct calls are served, and requests for later delivery are refused until the deliveries' store works, which weir checks every 5 seconds; weir check --connect tries it"

// checkDeliveries checks the deliveries' store and the folder of large bodies, and reports whether both are available.
func (s *Server) checkDeliveries(ctx context.Context, d *deliveries) bool {
	err := d.check(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) {
		s.troubles.note(status.WithDeliveries, "", deliveriesHelp, err)
	}
	if d.files != nil && err == nil {
		err = d.files.Check()
		s.troubles.note("large bodies of deliveries", "", "requests with small bodies are stored; weir checks the folder every 5 seconds", err)
	}
	return err == nil
}

// watchDeliveries checks the deliveries' store after it has failed, until it is available.
func (s *Server) watchDeliveries(ctx context.Context, d *deliveries, available bool) {
	for {
		pause := recheckEvery
		if available {
			pause = time.Second
			select {
			case <-d.suspects:
			case <-ctx.Done():
				return
			}
		}
		if clock.System.Sleep(ctx, pause) != nil {
			return
		}
		available = s.checkDeliveries(ctx, d)
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
		return "", &warning{said: name + " can be read and written", warns: []string{"a running weir has it open; a second one stores nothing in it meanwhile"}}
	case f.Latest:
		return fmt.Sprintf("%s can be read and written; its schema has version %d", name, f.Version), nil
	case f.Version > 0:
		return fmt.Sprintf("%s can be read and written; its schema has version %d, which weir serve upgrades", name, f.Version), nil
	}
	return name + " can be created", nil
}

// longHeld is how long a snapshot may be held without a warning.
const longHeld = time.Minute
