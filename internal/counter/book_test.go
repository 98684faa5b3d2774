package counter

import (
	"sync"
	"testing"
)

// Many new keys, one after the other, are each copied a few times, not once for every other key.
func TestManyKeysAreCopiedFewTimes(t *testing.T) {
	opened := 0
	b := NewBook(new(sync.Mutex), func(k int) int { opened++; return -k })
	const n = 20_000
	copied, at := 0, b.known.Load()
	for k := range n {
		if got := b.Get(k); got != -k {
			t.Fatalf("%d: got %d", k, got)
		}
		if now := b.known.Load(); now != at {
			at, copied = now, copied+len(*now)
		}
	}
	if copied > 12*n || opened != n {
		t.Errorf("%d copied and %d opened for %d keys", copied, opened, n)
	}
	// A value that is looked up repeatedly becomes available without the lock, and stays the same.
	for range 2 * n {
		if got := b.Get(n - 1); got != 1-n {
			t.Fatalf("got %d", got)
		}
	}
	if got := (*b.known.Load())[n-1]; got != 1-n || opened != n {
		t.Errorf("found %d without the lock; %d opened", got, opened)
	}
	b.Clear()
	if b.Get(n - 1); opened != n+1 {
		t.Error("what was forgotten was found")
	}
}
