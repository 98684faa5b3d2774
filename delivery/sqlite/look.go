package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"github.com/seed1158cd35/weir/internal/private"
)

var (
	errForeign = errors.New("it is not a file of deliveries: use another one")
	errOlder   = errors.New("an older weir wrote it, and this command only reads it: weir serve and weir dead redrive upgrade it")
)

// A Found describes the file at a path.
type Found struct {
	Version int  // of the schema; 0 if there is no file or it is empty
	Latest  bool // Version is the version that this weir writes
	Held    bool // another process has it open
}

// Look describes the file at path without changing it. It returns an error if weir could not store deliveries there.
func Look(ctx context.Context, path string) (Found, error) {
	path, err := real(path)
	if err == nil {
		err = mayOpen(path)
	}
	if err != nil {
		return Found{}, fmt.Errorf("deliveries in %s: %w", path, err)
	}
	let, err := share(path + ".lock")
	f := Found{Held: errors.Is(err, ErrHeld)}
	if err == nil {
		defer let()
		f.Version, err = probe(ctx, path)
		f.Latest = f.Version == version
	}
	if f.Held {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("deliveries in %s: %w", path, err)
	}
	return f, err
}

// mayOpen returns why this process cannot open a file for reading and writing, or create it.
func mayOpen(path string) error {
	if err := private.Check(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mayMake(filepath.Dir(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errForeign
	}
	if err := oneName(path); err != nil {
		return err
	}
	if err := mayWrite(path); err != nil {
		return err
	}
	return mayMake(filepath.Dir(path)) // for the log and the lock
}

// mayMake returns why no file can be created in a folder.
func mayMake(dir string) error {
	f, err := os.CreateTemp(dir, ".weir-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// probe returns the version of the schema of a file; 0 if it is missing or empty. If the file was closed properly,
// probe changes nothing. Otherwise it reads the log as any reader does.
func probe(ctx context.Context, path string) (is int, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 || halfMade(path) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", source(path, reading(path)...))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	is, _, err = marks(func(query string, to *int) error { return db.QueryRowContext(ctx, query).Scan(to) })
	if codeOf(err) == lib.SQLITE_NOTADB {
		err = errForeign
	}
	return is, err
}

// halfMade reports whether power was lost while a file was created. Then SQLite left its rollback journal, which files
// of deliveries use only at that time. The file cannot be read until the journal is rolled back.
func halfMade(path string) bool {
	is, err := os.Stat(path)
	journal, failed := os.Stat(path + "-journal")
	return err == nil && failed == nil && is.Size() > 0 && journal.Size() > 0
}

// rollBack makes SQLite apply a rollback journal, and changes nothing else in the file.
func rollBack(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", source(path, "mode=rw", "_pragma=busy_timeout(5000)"))
	if err != nil {
		return err
	}
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(new(int))
	if codeOf(err) == lib.SQLITE_NOTADB {
		err = errForeign
	}
	return errors.Join(err, db.Close())
}

// reading returns the settings for opening a file read-only. A file without a log is complete, so the setting immutable
// keeps SQLite from creating a log.
func reading(path string) []string {
	how := []string{"mode=ro", "_pragma=busy_timeout(5000)", "_pragma=query_only(1)"}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		how = append(how, "immutable=1")
	}
	return how
}

// marks returns the version of the schema, and whether the file has no tables yet. It returns an error if the file is
// not a file of deliveries, or has an unknown version.
func marks(ask func(query string, to *int) error) (is int, fresh bool, err error) {
	var id, tables int
	for query, to := range map[string]*int{"PRAGMA user_version": &is, "PRAGMA application_id": &id, "SELECT count(*) FROM sqlite_schema": &tables} {
		if err := ask(query, to); err != nil {
			return 0, false, err
		}
	}
	switch {
	case id == 0 && tables == 0:
		return 0, true, nil
	case id != applicationID:
		return 0, false, errForeign
	case is < 1 || is > version:
		return 0, false, fmt.Errorf("its schema has version %d, this weir supports %d: use the version that wrote it, or a newer one", is, version)
	}
	return is, false, nil
}

// OpenToRead opens an existing file for reading only. Methods that would change a delivery return an error. It creates
// no lock file. If there is one, it holds a shared lock, so that no weir can open the file meanwhile.
func OpenToRead(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, o: Options{}.withDefaults()}
	if err := s.openToRead(ctx); err != nil {
		return nil, fmt.Errorf("deliveries in %s: %w", path, errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Store) openToRead(ctx context.Context) (err error) {
	if s.path, err = real(s.path); err != nil {
		return err
	}
	if _, err = os.Stat(s.path); err != nil {
		return err
	}
	if s.let, err = share(s.path + ".lock"); err != nil {
		return err
	}
	is, err := probe(ctx, s.path)
	switch {
	case err != nil:
		return err
	case is == 0:
		return errors.New("it is empty")
	case is < version:
		return errOlder
	}
	return s.openReaders(reading(s.path))
}
