//go:build !unix

package connlimit

// Files is how many files this process may open.
func Files() uint64 { return 1 << 20 }
