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

// mostJobs is how many writes are committed at once.
const mostJobs = 256

// A writer has the one connection that writes. Its goroutine takes what has come, runs it in
// one transaction, each job in a savepoint of its own so that one that fails undoes itself
// alone, and answers once the transaction is on disk. Where a failure takes the transaction
// along, every job is run once more in a transaction of its own.
type writer struct {
	*stored.Gatherer[*job]
	to    string                  // the file, and how it is opened
	conn  *conn                   // of the writer's goroutine; nil if there is none
	log   func() int64            // its size in bytes
	room  func(need, int64) error // that there is in a log of a size
	frees func() bool             // gives up space on the disk; false if there is none
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once

	trimmed time.Time // when the log was last tried to be cut
	batch   batch     // of the transaction
	usage   usage
	weighed time.Time // when the size of the file was last looked at
	bytes   atomic.Int64
	held    map[delivery.Claim]ended // what the rows say of claims that were made, and need not be asked again at their ends
}

// A job is one caller's change.
type job struct {
	// do makes the change. It may be run twice, and after its caller went: it sets what it
	// finds anew, in variables that the caller reads only once the job was done.
	do     func(*change) error
	needs  need // of room in the log
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

// migrate makes the tables, or refuses a file that is not one of deliveries.
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

// errOnlyRead is for a file that was opened to be looked at.
var errOnlyRead = errors.New("the deliveries' file is open for reading only")

// A need is how much room there must be in the log for a change.
type need uint8

const (
	always need = iota // the end of something: without it work is done twice
	begins             // it begins something, or is not urgent
	stores             // it stores something new
)

// do runs a change that stores something new, or one that is always made. See have.
func (w *writer) do(ctx context.Context, grows bool, do func(*change) error) error {
	needs := always
	if grows {
		needs = stores
	}
	return w.have(ctx, needs, do)
}

// have runs a change and returns when it is on disk. If ctx ends before, the change may still be
// made: the error is ErrUncertain.
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

// trim cuts the log, if what is in it has been written to the database. That can be done where
// nobody reads what it replaces; a reader is not waited for, as all that is written would wait.
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

// trimming is how often the log is tried to be cut.
const trimming = 100 * time.Millisecond

// weigh reads once per second how much of the file is in use: deliveries, answers, attempts and known keys.
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

// connected is the connection; another one if that was given up.
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

// changes runs a statement and says how many rows it has changed.
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

// close ends the goroutine after what it is writing.
func (w *writer) close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.ended
	return w.disconnect()
}

// disconnect ends the connection; the next statement opens another one.
func (w *writer) disconnect() (err error) {
	if w.conn != nil {
		err = w.conn.close()
		w.conn = nil
	}
	return err
}
