package delivery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files stores Bodies, each in its own file, in a folder that only its owner may read. The folder is on the machine of
// a deliveries' file, or shared by a fleet. Files is safe for concurrent use.
type Files struct{ dir string }

var _ Bodies = (*Files)(nil)

// OpenFiles creates the folder if it does not exist.
func OpenFiles(dir string) (*Files, error) {
	f := NewFiles(dir)
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f, nil
}

// NewFiles returns a store in a folder that Check or Gather creates if it does not exist.
func NewFiles(dir string) *Files { return &Files{dir} }

// Check creates the folder if it does not exist.
func (f *Files) Check() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("bodies of deliveries: %w", err)
	}
	return nil
}

// String returns the path of the folder.
func (f *Files) String() string { return f.dir }

// gathered is the name prefix of files that Put has not stored yet.
const gathered = "tmp-"

// Gather creates an empty file.
func (f *Files) Gather() (*os.File, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return os.CreateTemp(f.dir, gathered)
}

func (f *Files) path(name string) (string, error) {
	if name == "" || strings.HasPrefix(name, gathered) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%q is not the name of a body", name)
	}
	return filepath.Join(f.dir, name), nil
}

// Put makes a gathered file the body with the given name. It syncs the contents before it renames the file.
func (f *Files) Put(_ context.Context, name string, from *os.File) error {
	to, err := f.path(name)
	if err == nil {
		err = from.Sync()
	}
	if err == nil {
		err = from.Close()
	}
	if err == nil {
		err = os.Rename(from.Name(), to)
	}
	if err != nil {
		return err
	}
	return f.sync()
}

// sync makes the names in the folder durable.
func (f *Files) sync() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return nil // some systems cannot open directories, and do not need this
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

// Open opens a body for reading, after checking its size and hash.
func (f *Files) Open(_ context.Context, b Blob) (io.ReadSeekCloser, error) {
	at, err := f.path(b.Name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: its file is missing", ErrNoBody)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	if err == nil && (n != b.Size || [sha256.Size]byte(sum.Sum(nil)) != b.Sum) {
		err = fmt.Errorf("%w: its file has changed (%d of %d bytes)", ErrNoBody, n, b.Size)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Rename gives a body another name.
func (f *Files) Rename(_ context.Context, from, to string) error {
	was, err := f.path(from)
	if err != nil {
		return err
	}
	is, err := f.path(to)
	if err == nil {
		err = os.Rename(was, is)
	}
	if err != nil {
		return err
	}
	return f.sync()
}

// Remove removes a body. A missing body is not an error.
func (f *Files) Remove(_ context.Context, name string) error {
	at, err := f.path(name)
	if err == nil {
		err = os.Remove(at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List returns the names of bodies that are older than before, sorted. It removes gathered files of that age, which
// were never put.
func (f *Files) List(_ context.Context, after string, before time.Time, most int) (names []string, err error) {
	all, err := os.ReadDir(f.dir) // sorted by name
	for _, e := range all {
		if len(names) >= most {
			break
		}
		left := strings.HasPrefix(e.Name(), gathered)
		if e.Name() <= after && !left {
			continue
		}
		info, gone := e.Info()
		switch {
		case gone != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before):
		case left:
			_ = os.Remove(filepath.Join(f.dir, e.Name()))
		default:
			names = append(names, e.Name())
		}
	}
	return names, err
}
