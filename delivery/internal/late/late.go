// Package late makes up for time in which a process stood still, as a virtual machine does: nothing ran in it, and yet the time of
// whoever waits is up when it is over.
package late

import (
	"context"
	"errors"
	"time"
)

const (
	onTime   = 50 * time.Millisecond  // later than that, a deadline was not heard of in time
	mostMade = 250 * time.Millisecond // of what was missed is made up for
)

// Ends is for one whose ctx has ended while it waited for done. If its deadline is heard of late it waits for as long again, as what it
// waits for is over in a moment, and it need not be told that nobody knows. It reports whether done is closed.
func Ends(ctx context.Context, done <-chan struct{}) bool {
	until, ok := ctx.Deadline()
	missed := time.Since(until)
	if !ok || missed <= onTime || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return false
	}
	t := time.NewTimer(min(missed, mostMade))
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
