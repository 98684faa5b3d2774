//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrHeld means that another process has the file open.
var ErrHeld = errors.New("another weir has the file open: use another file, or stop that weir")

// oneName refuses a file with hard links, because each name would have its own lock and log.
func oneName(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return fmt.Errorf("it has %d hard links, but its log and lock are next to one of them: remove the others, or copy the file", s.Nlink)
	}
	return nil
}

// lockFile locks the file at path for this process until it is closed or the process ends. It is not the database file:
// closing any descriptor of that file would drop SQLite's own locks.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, err
}

// share takes a shared lock on an existing lock file, together with other readers. let releases it. Without a lock file
// it does nothing.
func share(path string) (let func(), err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, err
}

// mayWrite returns why this process cannot open a file for reading and writing. It does not open the file.
func mayWrite(path string) error {
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}
