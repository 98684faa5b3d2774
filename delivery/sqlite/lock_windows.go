package sqlite

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// ErrHeld means that another process has the file open.
var ErrHeld = errors.New("another weir has the file open: use another file, or stop that weir")

// lockFile locks the file at path for this process until it is closed or the process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return locked(f, windows.LOCKFILE_EXCLUSIVE_LOCK)
}

func locked(f *os.File, flags uint32) (*os.File, error) {
	flags |= windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, ErrHeld
	}
	return nil, err
}

// oneName does nothing on Windows.
func oneName(string) error { return nil }

// share takes a shared lock on an existing lock file, together with other readers. let releases it. Without a lock file
// it does nothing.
func share(path string) (let func(), err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err == nil {
		f, err = locked(f, 0)
	}
	return func() { _ = f.Close() }, err
}

// mayWrite does nothing on Windows, where permissions are hard to check without opening the file.
func mayWrite(string) error { return nil }
