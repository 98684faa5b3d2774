// Package sqlite stores deliveries in an SQLite file, for one weir on one machine. Only one process at a time may have
// the file open. People may read it while weir runs, with sqlite3 -readonly, but must not leave a transaction open. An
// open transaction makes the write-ahead log grow, and beyond Options.MaxLog no delivery is accepted.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/private"
)

// Options are the settings of a Store. The zero value is suitable for most uses.
type Options struct {
	Keep      time.Duration // how long completed deliveries are kept; 0 means 7 days
	KeepDead  time.Duration // how long dead letters are kept; 0 means 30 days
	MaxLog    int64         // the largest write-ahead log, in bytes, with which deliveries are accepted; 0 means 512 MiB. Beyond 1.25 times that, none is claimed either
	MaxStored int64         // maximum number of stored deliveries of any status; 0 means a million. A named tenant may have half of them
	MaxSize   int64         // maximum total size of their requests in bytes; 0 means 4 GiB. A named tenant may use half of it
	Readers   int           // number of connections for reading; 0 means 4

	// Wall is the wall clock, which determines when deliveries are due and expire. Nil means the system clock. Leases
	// use the monotonic clock.
	Wall func() time.Time
}

// A Store stores deliveries in a file. One goroutine does the writes of all callers. It commits all writes that have
// accumulated in one transaction. A Store is safe for concurrent use.
type Store struct {
	path  string
	o     Options
	lock  *os.File
	let   func() // releases the lock of a read-only store; nil if there is none
	read  *sql.DB
	asks  sync.Map // prepared statements of read: *sql.Stmt by text
	write *writer
	begin time.Time // with a monotonic reading
	space reserve
	jumps jumps

	voided voided
}

var (
	_ delivery.Queue  = (*Store)(nil)
	_ delivery.Marker = (*Store)(nil)
)

// Open opens the file at path, and creates it if there is none. Claims of a former process go back to the queue: the
// lock on the file proves that this process has ended.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{path: path, o: o.withDefaults(), begin: time.Now()}
	s.jumps.start(s.o.Wall().UnixMilli() - s.steady())
	err := s.open(ctx)
	if fromDisk(err) && s.space.give() {
		err = errors.Join(s.Close())
		if s.read, s.write = nil, nil; err == nil {
			err = s.open(ctx)
		}
	}
	if err == nil {
		return s, nil
	}
	return nil, fmt.Errorf("deliveries in %s: %w", path, errors.Join(err, s.Close()))
}

func (o Options) withDefaults() Options {
	o.Keep, o.KeepDead = cmp.Or(o.Keep, 7*24*time.Hour), cmp.Or(o.KeepDead, 30*24*time.Hour)
	o.MaxStored, o.MaxSize = cmp.Or(o.MaxStored, 1_000_000), cmp.Or(o.MaxSize, 4<<30)
	o.MaxLog, o.Readers = cmp.Or(o.MaxLog, 512<<20), cmp.Or(o.Readers, 4)
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return o
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.path, err = real(s.path); err != nil {
		return err
	}
	if err = private.Check(s.path); err != nil {
		return err
	}
	if halfMade(s.path) {
		if err = rollBack(ctx, s.path); err != nil {
			return err
		}
	}
	s.space.path = s.path + ".reserve"
	lock := s.path + ".lock"
	if _, err = os.Stat(lock); err != nil { // no weir has opened it yet: it may be any file, so create nothing next to it
		if _, err = probe(ctx, s.path); err != nil {
			return err
		}
	}
	if s.lock, err = lockFile(lock); err != nil {
		return err
	}
	if _, err = probe(ctx, s.path); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would make it readable for everyone
	if err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = oneName(s.path); err != nil {
		return err
	}
	if s.write, err = newWriter(ctx, source(s.path,
		"_txlock=immediate", "_pragma=busy_timeout(5000)", "_pragma=journal_mode(wal)", "_pragma=synchronous(full)",
		"_pragma=journal_size_limit(16777216)", "_pragma=foreign_keys(0)"), s.LogSize, s.logRoom, s.space.give); err != nil {
		return err
	}
	if err = syncDir(filepath.Dir(s.path)); err != nil {
		return err
	}
	if err = s.openReaders([]string{"_pragma=busy_timeout(5000)", "_pragma=query_only(1)"}); err != nil {
		return err
	}
	if err = s.write.do(ctx, false, (*change).recount); err != nil {
		return err
	}
	if err := s.void(); err != nil {
		return err
	}
	return s.write.do(ctx, false, func(*change) error { // in the writer's goroutine, which uses it from now on
		s.space.used.Store(true)
		s.space.tried = time.Time{}
		s.space.keep()
		return nil
	})
}

func (s *Store) openReaders(how []string) (err error) {
	if s.read, err = sql.Open("sqlite", source(s.path, how...)); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(s.o.Readers)
	s.read.SetMaxIdleConns(s.o.Readers)
	s.read.SetConnMaxIdleTime(0)
	return nil
}

// source returns the driver's URI of a file. busy_timeout must come first, or a busy file makes the later pragmas fail.
func source(path string, settings ...string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()}
	for _, v := range settings {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += v
	}
	return u.String()
}

// Check returns an error if the file cannot store deliveries now, for example because the disk is full or another program
// has locked the file.
func (s *Store) Check(ctx context.Context) error {
	if err := s.write.do(ctx, true, func(*change) error { return s.space.fits() }); err != nil {
		return fmt.Errorf("deliveries in %s: %w", s.path, err)
	}
	return nil
}

// Close waits for pending writes and closes the file.
func (s *Store) Close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil
	}
	if s.let != nil {
		s.let()
		s.let = nil
	}
	return errors.Join(errs...)
}

// wall returns the time of the wall clock. steady returns the same time without its jumps since the file was opened.
// Both are in milliseconds since 1970.
func (s *Store) wall() int64 {
	wall := s.o.Wall().UnixMilli()
	s.jumps.see(wall - s.steady())
	return wall
}

func (s *Store) steady() int64 { return s.begin.UnixMilli() + time.Since(s.begin).Milliseconds() }

// logRoom returns an error if the write-ahead log, with log bytes, is too large for a change. Changes that begin
// something may use a quarter more than changes that store something. Changes that end something have no limit, but
// there are no more of them than changes that begin something.
func (s *Store) logRoom(needs need, log int64) error {
	most := s.o.MaxLog
	switch needs {
	case always:
		return nil
	case begins:
		most += most / 4
	case stores:
		if used := s.write.bytes.Load(); used > 2*s.o.MaxSize {
			return fmt.Errorf("%w: %s has %d MiB in use, twice max_size", delivery.ErrFull, s.path, used>>20)
		}
		if !s.space.keep() {
			return errDiskFull
		}
	}
	if log > most {
		return fmt.Errorf("%w: the write-ahead log of %s has %d MiB, because a reader keeps a transaction open: end that", delivery.ErrFull, s.path, log>>20)
	}
	return nil
}

// LogSize returns the size of the write-ahead log in bytes.
func (s *Store) LogSize() int64 {
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// real returns the path of a file with its links resolved. So a file has one lock and one log, whichever name is used
// to open it. The file need not exist yet.
func real(path string) (string, error) {
	is, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return is, err
	}
	if to, err := os.Readlink(path); err == nil { // a link to a missing file
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		return real(to)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// syncDir makes the name of a new file durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // some systems cannot open directories, and do not need this
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}
