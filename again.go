package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// asksLater is for a policy with AskAgain: a call for which a limit has too few units stands in no line. It waits where it is,
// for the times of the schedule, and asks anew after each; d is what it was told first, and counted whether
// the breaker had heard of the call before. Who comes meanwhile may go before it,
// and so it may be refused where those in line would have gone. Waits end early as those of retries do: when the breaker
// opens, and when nobody is to wait any more.
func (w *walk) asksLater(ctx context.Context, d step, counted bool) (step, error) {
	again := &w.by.live.policy.AskAgain
	if d.wait == bucket.Never {
		return d, nil // the limit never holds as much
	}
	var wait time.Duration
	for n := 1; n < again.Attempts && d.why == RateLimited; n++ {
		wait = again.Delay(n, wait, outcome.Throttled, w.u.options.Rand)
		if later(w.now, wait) > w.deadline {
			return d, nil
		}
		_, err := w.u.sleepers.sleep(ctx, w.breaker, wait)
		w.now = w.u.clock.Now()
		switch {
		case err != nil && !tooLate(ctx, w.now, w.deadline):
			return d, err
		case err != nil:
			return d, nil
		case w.u.sleepers.closed.Load():
			return no(ShuttingDown, soon), nil
		}
		// As it came: what it held went back when it was refused, the breaker's ticket, too.
		w.limits.Reset()
		w.until, w.why, w.lack, w.counted = w.now, -1, limit.LacksNothing, counted
		if d = w.ask(); !d.refused() {
			if d, err = w.pass(ctx, d); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}
