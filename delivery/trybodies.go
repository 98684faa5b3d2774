package delivery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"
)

// TryBodies stores a small body, reads it, calls List, and removes it. An error means that deliveries would fail in the
// same way.
func TryBodies(ctx context.Context, b Bodies) error {
	id := NewID(time.Now())
	blob := Blob{Size: int64(len(id)), Sum: sha256.Sum256([]byte(id))}.named(id)
	f, err := b.Gather()
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.WriteString(id); err != nil {
		return err
	}
	if err := b.Put(ctx, blob.Name, f); err != nil {
		return fmt.Errorf("store a body: %w", err)
	}
	if _, err = b.List(ctx, "", time.Now().Add(-orphaned), 1); err != nil {
		err = fmt.Errorf("list bodies: %w", err)
	}
	got, bad := b.Open(ctx, blob)
	if bad == nil {
		bad = got.Close()
	}
	if bad != nil {
		err = errors.Join(err, fmt.Errorf("read a body: %w", bad))
	}
	if bad = b.Remove(ctx, blob.Name); bad != nil {
		err = errors.Join(err, fmt.Errorf("remove a body: %w", bad))
	}
	return err
}
