package cache

import (
	"context"
	"time"
)

// Blobs stores bytes for all processes of a fleet. Keys have 32 bytes and reveal nothing. Methods return soon after
// their context ends, and are safe for concurrent use.
type Blobs interface {
	// Get returns the value of a key. It returns nothing and no error if there is no value. The caller may change the
	// returned slice.
	Get(ctx context.Context, key []byte) ([]byte, error)

	// Put stores a value for about the given time and replaces the key's previous value. The store may drop it earlier.
	Put(ctx context.Context, key, value []byte, keep time.Duration) error

	// Most returns the maximum size of a value in bytes.
	Most() int
}

// A Locker is a Blobs with locks, so that only one process of a fleet refreshes an answer. Lock is safe for concurrent
// use.
type Locker interface {
	// Lock reports whether the caller acquired the lock of a key. A lock expires by itself.
	Lock(ctx context.Context, key []byte, keep time.Duration) (bool, error)
}
