//go:build unix

package connlimit

import "syscall"

// Files returns the number of files that this process may open.
func Files() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 1 << 20
	}
	return uint64(r.Cur)
}
