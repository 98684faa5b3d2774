package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// ErrHeld means that another process has the file open.
var ErrHeld = errors.New("another weir has the file open: give each its own, or stop the other")

// lockFile holds the file at path for this process, until it is closed or the process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	if err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, ErrHeld
	}
	return nil, err
}

// oneName is for systems on which a file has several names more often.
func oneName(string) error { return nil }
