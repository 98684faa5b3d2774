package sqlite

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	maxReserve   = 8 << 20
	reserveEvery = time.Second // how often a reserve that was used is taken again
)

// Tests replace these, as they have no disk of their own.
var sizeOfDisk, reserveSpace = diskSize, allocate

// A reserve is a file that keeps space on the disk. When the disk is full, the space is given up for changes that
// free some: drop, redrive, and the end of attempts. Nothing new is stored until the space has been taken again.
// One goroutine uses it; used may be read by others.
type reserve struct {
	path  string
	used  atomic.Bool
	tried time.Time
}

// want is the size of the reserve: a sixteenth of a small disk.
func (r *reserve) want() int64 {
	if total := sizeOfDisk(r.path); total > 0 {
		return min(maxReserve, total/16)
	}
	return maxReserve
}

// keep takes the space, if that was not tried just now, and reports whether the reserve has it.
func (r *reserve) keep() bool {
	if !r.used.Load() {
		return true
	}
	if time.Since(r.tried) < reserveEvery {
		return false
	}
	r.tried = time.Now()
	err := r.take()
	r.used.Store(errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) // where no space can be kept, none is
	return !r.used.Load()
}

// take makes the file as large as it must be.
func (r *reserve) take() error {
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	want := r.want()
	if info, err := f.Stat(); err != nil || info.Size() >= want {
		return err
	}
	if err = reserveSpace(f, want); err != nil {
		_ = f.Truncate(0)
	}
	return err
}

// fill writes a file full, where the system cannot allocate space otherwise.
func fill(f *os.File, size int64) error {
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = byte(i * 31) // no zeros, which some file systems do not store
	}
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// give gives the space up, and reports whether there was any.
func (r *reserve) give() bool {
	info, err := os.Stat(r.path)
	had := err == nil && info.Size() > 0
	if had {
		had = os.Truncate(r.path, 0) == nil
	}
	r.used.Store(true)
	r.tried = time.Now()
	return had
}
