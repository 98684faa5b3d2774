//go:build !linux

package sqlite

import "os"

// diskSize returns 0, because the size is unknown on this system.
func diskSize(string) int64 { return 0 }

func allocate(f *os.File, size int64) error { return fill(f, size) }
