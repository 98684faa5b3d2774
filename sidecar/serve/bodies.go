package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/s3bodies"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// openBodies opens the store of bodies that are too large for records, or returns nil if the file configures none.
func openBodies(c *config.Deliveries) (delivery.Bodies, error) {
	switch {
	case c.MaxBody <= delivery.MaxBody:
		return nil, nil
	case c.InBucket == nil:
		return delivery.NewFiles(c.Bodies), nil
	}
	cfg, err := awsDefaults(c.InBucket.Region)
	if err != nil {
		return nil, fmt.Errorf("deliveries: bodies: %w", err)
	}
	return s3bodies.New(s3bodies.Options{Bucket: c.InBucket.Bucket, Prefix: c.InBucket.Prefix, Region: cfg.Region, Endpoint: c.InBucket.Endpoint, Credentials: cfg.Credentials})
}

// tryBodies stores, reads and removes a body. It also removes a folder that it created.
func tryBodies(ctx context.Context, c *config.Deliveries) (string, error) {
	at := c.Bodies
	if c.InBucket != nil {
		at = "the bucket " + c.InBucket.Bucket
	}
	_, gone := os.Stat(c.Bodies)
	fresh := c.InBucket == nil && errors.Is(gone, fs.ErrNotExist)
	b, err := openBodies(c)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	err = delivery.TryBodies(ctx, b)
	said := fmt.Sprintf("%s can be read and written, after %v", at, time.Since(begin).Round(100*time.Microsecond))
	if fresh {
		said = at + " can be created"
		err = errors.Join(err, os.Remove(c.Bodies))
	}
	return said, err
}

// triesBodies returns the trials of the store of large bodies.
func triesBodies(c *config.Deliveries) []trial {
	if c.MaxBody <= delivery.MaxBody {
		return nil
	}
	return []trial{{"deliveries bodies", func(ctx context.Context) (string, error) { return tryBodies(ctx, c) }}}
}

// initBodies creates the folder of large bodies, or checks their bucket. weir does not create a bucket, because its
// owner sets the permissions.
func initBodies(ctx context.Context, out io.Writer, c *config.Deliveries) error {
	b, err := openBodies(c)
	if err == nil && b != nil {
		err = delivery.TryBodies(ctx, b)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the deliveries' large bodies: %w", err)
	case b != nil:
		fmt.Fprintf(out, "the deliveries' large bodies can be stored: %s\n", b)
	}
	return nil
}
