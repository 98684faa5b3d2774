package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

const (
	maxReserve   = 8 << 20
	reserveEvery = time.Second // how often a released reserve is allocated again
)

// Tests replace these.
var sizeOfDisk, reserveSpace = diskSize, allocate

// A reserve is a file that reserves space on the disk. When the disk is full, the space is released for changes that
// free some: drop, redrive, and the ends of attempts. Nothing new is stored until the space has been allocated again.
// Only one goroutine uses it, but any may read used.
type reserve struct {
	path  string
	used  atomic.Bool
	tried time.Time
}

// want returns the size of the reserve: maxReserve, or a sixteenth of a small disk.
func (r *reserve) want() int64 {
	if total := sizeOfDisk(r.path); total > 0 {
		return min(maxReserve, total/16)
	}
	return maxReserve
}

// keep allocates the reserve if it was released, at most once per reserveEvery. It reports whether the space is
// reserved.
func (r *reserve) keep() bool {
	if !r.used.Load() {
		return true
	}
	if time.Since(r.tried) < reserveEvery {
		return false
	}
	r.tried = time.Now()
	err := r.take()
	r.used.Store(lacksSpace(err)) // other errors mean that this system cannot reserve space
	return !r.used.Load()
}

var errDiskFull = fmt.Errorf("%w: the disk is full, and the rest is reserved for stored deliveries: free some space", delivery.ErrFull)

func lacksSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fits returns errDiskFull if the disk has no room for a delivery outside the reserve.
func (r *reserve) fits() error {
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		return nil // this system cannot reserve space
	}
	defer f.Close()
	want := r.want()
	if info, err := f.Stat(); err != nil || info.Size() < want {
		return nil
	}
	defer f.Truncate(want)
	if lacksSpace(reserveSpace(f, want+want/8)) {
		return errDiskFull
	}
	return nil
}

// take extends the file to the required size.
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

// fill allocates space by writing, for systems that have no other way.
func fill(f *os.File, size int64) error {
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = byte(i * 31) // not zeros, which some file systems do not store
	}
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// give releases the space and reports whether there was any.
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
