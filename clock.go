package weir

import (
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Clock is the time that an upstream lives in; see package clock.
type Clock = clock.Clock

// later is now+d, or Never if there is no such instant.
func later(now, d time.Duration) time.Duration {
	if d > bucket.Never-now {
		return bucket.Never
	}
	return now + d
}
