//go:build !unix

package filestore

var errDiskQuota error // other systems have no such error
