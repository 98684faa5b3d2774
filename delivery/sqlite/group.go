package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// commit runs a group of jobs, in one transaction if possible.
func (w *writer) commit(group []*job) {
	if w.room(stores, w.log()) != nil {
		w.trim()
	}
	w.weigh()
	if !w.settle(group) {
		for i := range group {
			w.settle(group[i : i+1])
		}
	}
	w.again(group)
	w.Answers(len(group))
	for _, j := range group {
		close(j.done)
	}
}

// again repeats jobs that failed for lack of disk space, after it has released the reserve. It does not repeat jobs
// that store new deliveries.
func (w *writer) again(group []*job) {
	freed := false
	for i, j := range group {
		if j.needs == stores || !fromDisk(j.err) {
			continue
		}
		if freed = freed || w.frees(); !freed {
			return
		}
		w.settle(group[i : i+1])
	}
}

// fromDisk reports whether an error was caused by the disk, which is full or fails.
func fromDisk(err error) bool {
	switch codeOf(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN, lib.SQLITE_CORRUPT, lib.SQLITE_NOMEM:
		return true
	}
	for _, no := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// settle runs jobs in one transaction and sets their errors. It returns false if nothing was stored and each job may
// succeed alone. If the transaction was not stored, no job's result is valid: each gets the transaction's error, unless
// it already has ErrFull.
func (w *writer) settle(group []*job) bool {
	lost, err := w.transact(group, false)
	if errors.Is(err, errTogether) {
		w.undo()
		lost, err = w.transact(group, true)
	}
	if err == nil {
		return true
	}
	w.undo()
	if len(group) > 1 && (lost || errors.Is(err, delivery.ErrFull)) {
		return false
	}
	for _, j := range group {
		if !errors.Is(j.err, delivery.ErrFull) {
			j.err = err
		}
	}
	return true
}

// errTogether means that one of several jobs failed and had no savepoint to roll back to.
var errTogether = errors.New("one of several changes failed")

// transact runs jobs in one transaction. lost means that one of them ended it. With apart, each job runs in a
// savepoint. Without it, which is faster and nearly always works, the first failure returns errTogether, and the caller
// must repeat the jobs with apart.
func (w *writer) transact(group []*job, apart bool) (lost bool, err error) {
	for _, j := range group {
		j.err = nil
	}
	log := w.log()
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return false, wrapped(err)
	}
	w.batch.clear()
	if w.usage.begin(); w.usage.unsure {
		if err := (&change{w: w}).takeStock(); err != nil {
			return true, wrapped(err)
		}
	}
	held := make(map[string]stock)
	total := make(map[countKey]int64)
	for _, j := range group {
		switch j.err = w.room(j.needs, log); {
		case j.err != nil:
			continue
		case apart:
			if w.one(j) {
				return true, j.err
			}
		default:
			w.plain(j)
			if j.err != nil && !errors.Is(j.err, delivery.ErrKeyReused) && !errors.Is(j.err, stored.ErrBound) { // these errors occur before any change
				return false, errTogether
			}
		}
		if j.err == nil {
			for _, c := range j.change.counts {
				total[c.of] += c.n
			}
			for tenant, s := range j.change.stored {
				held[tenant] = held[tenant].Plus(s)
			}
		}
	}
	if w.write() != nil {
		return false, errTogether
	}
	if err := w.flush(total); err != nil {
		return true, wrapped(err)
	}
	if err = wrapped(w.exec("COMMIT")); err != nil && !errors.Is(err, delivery.ErrFull) {
		w.usage.unsure = true
		err = fmt.Errorf("%w: %w", delivery.ErrUncertain, err)
	}
	if err == nil {
		w.usage.commit(held)
	}
	return false, err
}

// one runs a job in a savepoint, so that it can be undone alone. Without disk space or memory, SQLite may roll back the
// whole transaction and remove the savepoint. Then the transaction is lost.
func (w *writer) one(j *job) (lost bool) {
	if j.err = wrapped(w.exec("SAVEPOINT job")); j.err != nil {
		return true
	}
	if w.plain(j); j.err == nil {
		j.err = wrapped(w.write())
	}
	if j.err != nil {
		w.batch.clear()
		clear(w.held)
		if w.exec("ROLLBACK TO job") != nil {
			return true
		}
	}
	if err := w.exec("RELEASE job"); err != nil {
		j.err = errors.Join(j.err, wrapped(err))
		return true
	}
	return false
}

func (w *writer) plain(j *job) {
	j.change = change{w: w}
	j.err = wrapped(j.do(&j.change))
}

func (w *writer) flush(total map[countKey]int64) error {
	for k, n := range total {
		if n == 0 {
			continue
		}
		if err := w.exec("INSERT INTO counts(upstream, status, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", k.upstream, string(k.status), n); err != nil {
			return err
		}
	}
	return nil
}

// undo rolls back a failed transaction. SQLite may have done so itself, and then ROLLBACK returns SQLITE_ERROR. After
// any other error the state is unknown, so undo closes the connection: later statements could otherwise run in the old
// transaction. It also forgets the cached claims of the transaction.
func (w *writer) undo() {
	clear(w.held)
	if err := w.exec("ROLLBACK"); err != nil && codeOf(err) != lib.SQLITE_ERROR {
		_ = w.disconnect()
	}
}

// codeOf returns the primary SQLite code of an error, or -1 for an error of another origin.
func codeOf(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return -1
	}
	return e.Code() & 0xff
}

// wrapped translates an SQLite error to an error of package delivery.
func wrapped(err error) error {
	if codeOf(err) == lib.SQLITE_FULL {
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	}
	return err
}
