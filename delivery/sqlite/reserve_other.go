//go:build !linux

package sqlite

import "os"

// diskSize is the size of the file system that a path is on; 0 as it is not known here.
func diskSize(string) int64 { return 0 }

func allocate(f *os.File, size int64) error { return fill(f, size) }
