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

// Files are Bodies, each in a file of its own, in a folder that nobody else may read: on the machine of a deliveries' file, or one that
// a fleet shares.
type Files struct{ dir string }

var _ Bodies = (*Files)(nil)

// OpenFiles makes the folder, if it is not there.
func OpenFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("bodies of deliveries: %w", err)
	}
	return &Files{dir}, nil
}

// String is the folder.
func (f *Files) String() string { return f.dir }

// gathered is how the names of files begin that are not put yet.
const gathered = "tmp-"

// Gather makes an empty file.
func (f *Files) Gather() (*os.File, error) { return os.CreateTemp(f.dir, gathered) }

func (f *Files) path(name string) (string, error) {
	if name == "" || strings.HasPrefix(name, gathered) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%q is not the name of a body", name)
	}
	return filepath.Join(f.dir, name), nil
}

// Put makes a file that was gathered the body of a name: its bytes are on disk first, then its name.
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

// sync makes the names in the folder last.
func (f *Files) sync() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return nil // some systems open no directories, and need not
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

// Open reads a body from its beginning, after it was found to be as it was put.
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

// Remove removes a body.
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

// List names bodies that are older than an instant, in order. What was gathered before it, and never put, is removed.
func (f *Files) List(_ context.Context, after string, before time.Time, most int) (names []string, err error) {
	all, err := os.ReadDir(f.dir) // in order
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
