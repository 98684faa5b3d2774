//go:build !unix

package connlimit

// Files returns the number of files that this process may open.
func Files() uint64 { return 1 << 20 }
