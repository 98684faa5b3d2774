package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// hasLeft reports whether the call has left that asks the store with its own goroutine, if one does.
func hasLeft(driver context.Context) bool { return driver != nil && driver.Err() != nil }

// patience is for how long an answer is waited for: for less long by a driver, once it is known how long answers take, since
// other calls of its line cannot go from what is held meanwhile.
func (q *queue) patience(driver context.Context) time.Duration {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	if driver != nil && g.standing.rtt > 0 {
		return min(g.timeout(), max(soonest, 3*g.standing.rtt))
	}
	return g.timeout()
}

// call asks the store: once more if the calendar windows that it named are others by the
// store's clock, and once more with the same ID if it cannot be known what became of the
// first.
func (q *queue) call(driver context.Context, sent time.Duration) error {
	f, g := q.group.fleet, q.group
	limit, err := q.try(driver)
	// A connection that had ended unnoticed fails at once. To try again, once, costs the callers nothing then.
	if err != nil && !errors.Is(err, ErrWindow) && !hasLeft(driver) && !g.failing.Load() && f.clock.Now() < sent+soonest {
		g.failing.Store(true)
		q.ask.Again = true
		limit, err = q.try(driver)
	}
	if errors.Is(err, ErrWindow) {
		sent = f.clock.Now()
		f.heard(sent, q.ask.Now)
		for i, p := range q.leases {
			p.calendar(sent, p.spec(), &q.ask.Claims[i])
		}
		limit, err = q.try(driver)
	}
	// By the patience that this try had: a beat that is answered meanwhile may change it.
	if err != nil && driver != nil && (hasLeft(driver) || f.clock.Now() >= sent+limit) {
		q.ask.Again = true
		return errLeft
	}
	took := f.clock.Now() - sent
	if q.heardAsk(took, err) {
		g.kick(false)
	}
	if err == nil {
		f.heard(sent, q.ask.Now)
	}
	return err
}

// heardAsk notes how an ask ended. It reports whether the store answers again.
func (q *queue) heardAsk(took time.Duration, err error) (again bool) {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	if err != nil {
		g.failed(err)
		return false
	}
	g.standing.took(took)
	if g.standing.asks && !q.ask.Again && q.ask.granted() { // a refusal may need more requests, and nothing of it can be too late
		g.aged(took - q.ask.Delay)
	}
	return g.failing.Swap(false)
}

// try calls the store once. The limit is the time that it gives it, which has nothing to do with the patience of those who
// wait, but for the driver's own: an ask is for all of them, and one of which nobody knows what became costs more than it.
func (q *queue) try(driver context.Context) (limit time.Duration, err error) {
	f := q.group.fleet
	begin := f.clock.Now()
	limit = q.patience(driver)
	own := driver == nil
	if own {
		driver = context.Background()
	}
	if f.clock == clock.System {
		q.timer.begin(driver, limit)
		err = q.take(&q.timer, own)
		q.timer.end()
	} else {
		ctx, cancel := f.clock.WithTimeout(driver, limit, context.DeadlineExceeded)
		err = q.take(ctx, own)
		cancel()
	}
	if err == nil && len(q.ask.Grants) != len(q.ask.Claims) {
		err = fmt.Errorf("the store answered %d of %d claims", len(q.ask.Grants), len(q.ask.Claims))
	}
	if f.o.Events.Called != nil {
		q.tell(f.clock.Now()-begin, err)
	}
	return limit, err
}

// take asks. On a goroutine of the fleet's own a panic of the store's client would end the process: there it is an error of
// the store. A call that lends its goroutine has the panic itself.
func (q *queue) take(ctx context.Context, own bool) (err error) {
	if own {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: %v\n%s", errPanicked, v, debug.Stack())
			}
		}()
	}
	return q.group.fleet.store.Take(ctx, &q.ask)
}

// tell has the event of a call to the store; what it points to is used again after it.
func (q *queue) tell(took time.Duration, err error) {
	q.limits = q.limits[:0]
	e := StoreCall{Group: q.group.name, Calls: q.calls, Took: took, Again: q.ask.Again, Err: err}
	for _, p := range q.leases {
		q.limits = append(q.limits, LimitCall{Limit: &p.spec().limit})
	}
	if err == nil {
		e.Granted = q.ask.Granted
		for i := range q.ask.Grants {
			q.limits[i].Units, q.limits[i].Leased = e.Granted*q.ask.Claims[i].Cost, q.ask.Grants[i].Extra
		}
		for i := range q.ask.Settle {
			e.Back += q.ask.Settle[i].Back
		}
	}
	e.Limits = q.limits
	q.group.fleet.o.Events.Called(e)
}
