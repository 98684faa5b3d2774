package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// asksLater is for a policy with AskAgain: a call for which a limit has too few units joins no queue. It waits for
// the times of the schedule, and asks again after each. Calls that arrive meanwhile may overtake it, so it may be
// refused where a queue would have admitted it. d is the first decision, and counted whether the breaker had counted
// the call before. As for retries, a wait ends early when the breaker opens or the upstream drains.
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
		// Start as the first time: after a refusal the call holds nothing, also no ticket of the breaker.
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
