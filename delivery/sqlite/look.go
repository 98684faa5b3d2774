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

// A Found says what stands at a path, which nothing has changed.
type Found struct {
	Version int  // of the schema; 0 if there is no file, or an empty one
	Latest  bool // Version is the one that this weir writes
	Held    bool // a weir has it open
}

// Look says what stands at path. It is an error if weir could not keep deliveries there. A file that is none of
// deliveries is read, and not touched.
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

// mayOpen says why this process could not open a file for reading and writing, or make it.
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
	return mayMake(filepath.Dir(path)) // the log and the lock
}

// mayMake says why no file can be made in a folder.
func mayMake(dir string) error {
	f, err := os.CreateTemp(dir, ".weir-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// probe is the version of the schema of a file; 0 if it is not there, or empty. It changes nothing of a file that was
// closed well, and reads the log of another one as any program does that only reads.
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

// halfMade reports whether the power was cut while a file was made: SQLite left its rollback journal, which deliveries
// have no other use for. Such a file cannot be read before the journal has been rolled back.
func halfMade(path string) bool {
	is, err := os.Stat(path)
	journal, failed := os.Stat(path + "-journal")
	return err == nil && failed == nil && is.Size() > 0 && journal.Size() > 0
}

// rollBack has SQLite undo what stands in a rollback journal, and changes nothing else of the file.
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

// reading are the settings with which a file is only read. Without a log nothing of it is anywhere else, and SQLite is
// told so, or it would make one.
func reading(path string) []string {
	how := []string{"mode=ro", "_pragma=busy_timeout(5000)", "_pragma=query_only(1)"}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		how = append(how, "immutable=1")
	}
	return how
}

// marks says by what a file is told: the version of its schema, and whether it has no tables yet. It is an error if it
// is not one of deliveries, or of a version that this weir does not know.
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

// OpenToRead opens a file that is there to look at it, and changes nothing: what would change a delivery fails. It
// makes no lock; where there is one, no weir can open the file meanwhile.
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
