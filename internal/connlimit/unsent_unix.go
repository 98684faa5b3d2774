//go:build linux || darwin

package connlimit

import "syscall"

func boundUnsent(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsentBytes)
}
