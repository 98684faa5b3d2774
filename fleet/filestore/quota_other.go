//go:build !unix

package filestore

var errQuota error // other systems have no such error
