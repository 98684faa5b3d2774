//go:build unix

package filestore

import "syscall"

var errQuota error = syscall.EDQUOT
