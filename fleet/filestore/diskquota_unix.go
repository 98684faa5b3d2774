//go:build unix

package filestore

import "syscall"

var errDiskQuota error = syscall.EDQUOT
