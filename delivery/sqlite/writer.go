package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/late"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// mostJobs is the maximum number of writes in one transaction.
const mostJobs = 256

// A writer has the only connection that writes. Its goroutine takes the jobs that have accumulated, runs them in one
// transaction, and answers them after the commit. If a job fails, the group runs again with a savepoint for each job,
// so that only that job is undone. If the whole transaction fails, each job runs again in its own transaction.
type writer struct {
	*stored.Gatherer[*job]
	to    string                  // the file and its settings
	conn  *conn                   // used by the writer's goroutine; nil if there is none
	log   func() int64            // returns the log's size in bytes
	room  func(need, int64) error // returns an error if a log of this size has no room
	frees func() bool             // releases reserved disk space; false if there is none
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once

	trimmed time.Time // when the last attempt to truncate the log was made
	batch   batch     // of the transaction
	usage   usage
	weighed time.Time // when the size of the file was last read
	bytes   atomic.Int64
	held    map[delivery.Claim]ended // cached rows of present claims, which need not be read again when the claims end
}

// A job is one caller's change.
type job struct {
	// do makes the change. It may run twice, and after its caller has gone. Therefore it must reset its results each time.
	// They are in variables that the caller reads only after the job is done.
	do     func(*change) error
	needs  need // required room in the log
	change change
	err    error
	done   chan struct{}
}

func newWriter(ctx context.Context, source string, log func() int64, room func(need, int64) error, frees func() bool) (*writer, error) {
	w := &writer{to: source, log: log, room: room, frees: frees, Gatherer: stored.NewGatherer[*job](mostJobs, 2*time.Millisecond), stop: make(chan struct{}), ended: make(chan struct{}), batch: batch{texts: make(map[insertion]string)}, held: make(map[delivery.Claim]ended)}
	var err error
	if w.conn, err = connect(ctx, source); err == nil {
		err = w.migrate()
	}
	if err != nil {
		return nil, errors.Join(err, w.disconnect())
	}
	go w.run()
	return w, nil
}

// migrate creates or upgrades the tables. It refuses a file that is not a file of deliveries.
func (w *writer) migrate() error {
	is, fresh, err := marks(func(query string, to *int) error {
		_, err := (&change{w: w}).row(query, nil, to)
		return err
	})
	if err != nil || is == version {
		return err
	}
	script := ""
	if fresh {
		script, is = schema, 1
	}
	script += strings.Join(upgrades[is-1:], "")
	return w.conn.script(fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT", script, version, applicationID))
}

// errOnlyRead is returned for a file that was opened for reading only.
var errOnlyRead = errors.New("the deliveries' file is open for reading only")

// A need is a change's requirement for room in the log.
type need uint8

const (
	always need = iota // for the end of something, without which work would be repeated
	begins             // for a change that begins something or is not urgent
	stores             // for a change that stores something new
)

// do runs a change that stores something new if grows is true, and otherwise a change that always has room. See have.
func (w *writer) do(ctx context.Context, grows bool, do func(*change) error) error {
	needs := always
	if grows {
		needs = stores
	}
	return w.have(ctx, needs, do)
}

// have runs a change and returns after it is on disk. If ctx ends before, have returns ErrUncertain, and the change may
// still be made.
func (w *writer) have(ctx context.Context, needs need, do func(*change) error) error {
	if w == nil {
		return errOnlyRead
	}
	j := &job{do: do, needs: needs, done: make(chan struct{})}
	w.Add(j)
	select {
	case <-j.done:
	case <-w.ended:
		if w.TakeBack(j) {
			return delivery.ErrClosed
		}
		<-j.done // it was in the last group
	case <-ctx.Done():
		if late.Ends(ctx, j.done) {
			return j.err
		}
		if w.TakeBack(j) {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", delivery.ErrUncertain, context.Cause(ctx))
	}
	return j.err
}

func (w *writer) run() {
	defer close(w.ended)
	for group := w.Next(w.stop); group != nil; group = w.Next(w.stop) {
		w.commit(group)
	}
}

// trim truncates the log if the database file contains everything in it. That fails while a reader uses the log. trim
// does not wait for readers, because all writes would wait too.
func (w *writer) trim() {
	if now := time.Now(); now.Sub(w.trimmed) >= trimming {
		w.trimmed = now
		var busy, pages, done int
		c := change{w: w}
		if ok, err := c.row("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &done); err != nil || !ok || busy != 0 || done < pages {
			return
		}
		_ = w.exec("PRAGMA busy_timeout = 20")
		_, _ = c.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &pages, &done)
		_ = w.exec("PRAGMA busy_timeout = 5000")
	}
}

// trimming is the minimum interval between attempts to truncate the log.
const trimming = 100 * time.Millisecond

// weigh reads once per second how much of the file is in use by deliveries, responses, attempts and keys.
func (w *writer) weigh() {
	if time.Since(w.weighed) < time.Second {
		return
	}
	w.weighed = time.Now()
	var pages, free, size int64
	for query, to := range map[string]*int64{"PRAGMA page_count": &pages, "PRAGMA freelist_count": &free, "PRAGMA page_size": &size} {
		if ok, err := (&change{w: w}).row(query, nil, to); err != nil || !ok {
			return
		}
	}
	w.bytes.Store((pages - free) * size)
}

// connected returns the connection, and opens a new one if it was closed.
func (w *writer) connected() (c *conn, err error) {
	if w.conn == nil {
		w.conn, err = connect(context.Background(), w.to)
	}
	return w.conn, err
}

func (w *writer) exec(query string, args ...any) error {
	_, err := w.does(query, args)
	return err
}

// changes runs a statement and returns how many rows it changed.
func (w *writer) changes(query string, args ...any) (n int64, err error) {
	r, err := w.does(query, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (w *writer) does(query string, args []any) (driver.Result, error) {
	c, err := w.connected()
	if err != nil {
		return nil, err
	}
	return c.exec(query, args)
}

func (w *writer) query(query string, args ...any) (*found, error) {
	c, err := w.connected()
	if err != nil {
		return nil, err
	}
	return c.query(query, args)
}

// close stops the goroutine after its present group, and closes the connection.
func (w *writer) close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.ended
	return w.disconnect()
}

// disconnect closes the connection. The next statement opens another one.
func (w *writer) disconnect() (err error) {
	if w.conn != nil {
		err = w.conn.close()
		w.conn = nil
	}
	return err
}
