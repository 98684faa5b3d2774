package filestore

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// Errors of opening or writing a file.
var (
	ErrHeld    = errors.New("another process uses the file: run one weir per machine, or share limits through Redis or DynamoDB")
	ErrForeign = errors.New("the file was not created by weir: use another path for the store")
	ErrDamaged = errors.New("the file is damaged: restore it from a backup, or remove it, after which all limits and quotas start unused")
	ErrFull    = errors.New("the disk is full: free space, or raise the largest size of the file; nothing was granted")
	ErrClosed  = errors.New("the store is closed")
)

// noRoom are the errors after which a later write may succeed.
var noRoom = []error{berrors.ErrMaxSizeReached, syscall.ENOSPC, syscall.EFBIG, errDiskQuota}

// isFull reports whether err means that the disk is full.
func isFull(err error) bool {
	for _, e := range noRoom {
		if e != nil && errors.Is(err, e) {
			return true
		}
	}
	// bbolt hides the system's error when the file cannot grow.
	return err != nil && strings.HasPrefix(err.Error(), "file resize error")
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w (%s)", ErrDamaged, fmt.Sprintf(format, args...))
}

// guarded calls f and returns a panic as an error. A damaged file may even cause a memory fault.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged("%v", r)
		}
	}()
	return f()
}
