package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskSize returns the size of the file system of a path; 0 if it is unknown.
func diskSize(path string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}

func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fill(f, size)
	}
	return err
}
