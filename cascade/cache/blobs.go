package cache

import (
	"context"
	"time"
)

// Blobs keeps bytes for all processes of a fleet. Keys have 32 bytes and say nothing
// themselves. Its methods return soon after their context ends, and are safe for concurrent
// use.
type Blobs interface {
	// Get returns what was put under a key, or nothing if there is nothing any more, which
	// is no error. The caller may change what it gets.
	Get(ctx context.Context, key []byte) ([]byte, error)

	// Put keeps a value for about so long, in place of any other of the key. It may
	// forget it sooner.
	Put(ctx context.Context, key, value []byte, keep time.Duration) error

	// Most is how many bytes a value may have.
	Most() int
}

// A Locker is Blobs that also has locks, so that of a fleet one process refreshes an
// answer.
type Locker interface {
	// Lock reports whether the caller is the first to ask for a key since the last lock
	// of it ran out. A lock runs out by itself.
	Lock(ctx context.Context, key []byte, keep time.Duration) (bool, error)
}
