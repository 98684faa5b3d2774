package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A call whose caller cannot be charged because the fleet's store stopped responding waits storeWait at most, from its start, before
// tiers without a model answer it: until this process uses its part of the limits, which is empty then. It asks again each storeLook
// while it does not know when that is. When the store returns, the limits are empty again, and calls wait in the same way.
const (
	storeWait = 2 * time.Second
	storeLook = 100 * time.Millisecond
)

// forStore reports whether a limit refused a call because of the fleet's store and not because of the caller's usage.
// The store is unreachable or does not know the usage. Tiers without a model can still answer.
func forStore(err error) bool {
	r, ok := errors.AsType[*weir.Refusal](err)
	return ok && r.Want.Lack != limit.LacksNothing && !r.Want.Keys
}

// pay charges the caller of an unpaid call, if the limits allow that soon. A caller that states how long it waits, waits for a quarter
// of that.
func (c *conduct) pay(ctx context.Context) bool {
	most := storeWait
	if c.haste > 0 {
		most = min(most, c.haste/4)
	}
	for {
		wait, ok := soon(c.unpaid)
		if !ok || time.Since(c.start)+wait > most || !sleep(ctx, wait) {
			return false
		}
		grant, err := c.x.charge(ctx)
		if err == nil {
			c.grant, c.unpaid = grant, nil
			return true
		}
		if !forStore(err) { // the store responds, and the caller has used its limit
			return false
		}
		c.unpaid = err
	}
}

// soon returns when to ask again for what the store is the cause of, if that may help.
func soon(unpaid error) (time.Duration, bool) {
	r, ok := errors.AsType[*weir.Refusal](unpaid)
	switch {
	case !ok:
	case r.Want.Lack == limit.LacksTurn, r.Want.Lack == limit.LacksReserved:
		return max(r.RetryAfter, storeLook/10), true
	case r.Want.Lack == limit.LacksStore && r.Want.State == limit.StateHeard: // soon it is cut off, and uses its part
		return storeLook, true
	}
	return 0, false
}

// sleep reports whether it slept for so long.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
