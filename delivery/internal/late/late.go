// Package late extends waits whose deadline passed while the process was suspended, for example with its virtual
// machine.
package late

import (
	"context"
	"errors"
	"time"
)

const (
	onTime   = 50 * time.Millisecond  // a timeout that is noticed later than this indicates a suspended process
	mostMade = 250 * time.Millisecond // the maximum extension
)

// Ends continues a wait for done after ctx has ended. If the deadline of ctx was noticed late, it waits for as long
// again, up to mostMade, because the work is likely to end in a moment. Otherwise it returns false immediately. It
// reports whether done is closed.
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
