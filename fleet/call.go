package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// hasLeft reports whether the call that lends its goroutine to the request has left. driver is nil if no call
// does.
func hasLeft(driver context.Context) bool { return driver != nil && driver.Err() != nil }

// patience returns how long to wait for a response. For a driver it is shorter, once response times are known,
// because the other calls of its line cannot be served from blocks meanwhile.
func (q *queue) patience(driver context.Context) time.Duration {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	if driver != nil && g.standing.rtt > 0 {
		return min(g.timeout(), max(soonest, 3*g.standing.rtt))
	}
	return g.timeout()
}

// call asks the store. It repeats the request with other calendar windows if the store's clock is in those. It
// repeats it with the same ID if its effect is unknown.
func (q *queue) call(driver context.Context, sent time.Duration) error {
	f, g := q.group.fleet, q.group
	limit, err := q.try(driver)
	// A stale connection fails immediately, so one repeat costs the callers nothing.
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
	// Use the timeout of this try, since a heartbeat response may have changed it meanwhile.
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

// heardAsk records the result of a request. It reports whether the store responds again.
func (q *queue) heardAsk(took time.Duration, err error) (again bool) {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	if err != nil {
		g.failed(err)
		return false
	}
	g.standing.took(took)
	if g.standing.asks && !q.ask.Again && q.ask.granted() { // a refusal may take more round trips, and cannot be too late to use
		g.aged(took - q.ask.Delay)
	}
	return g.failing.Swap(false)
}

// try sends one request to the store and returns its timeout. The timeout does not depend on the deadlines of
// waiting callers, except the driver's. The request serves every waiting call, and a request with an unknown
// effect costs more than a late one.
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

// take calls the store. On a goroutine of the fleet, a panic of the store's client would end the process, so it
// becomes an error. On the goroutine of a call, the caller gets the panic.
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

// tell emits the event of a store request. Its slices are reused afterwards.
func (q *queue) tell(took time.Duration, err error) {
	q.limits = q.limits[:0]
	e := StoreCall{Group: q.group.name, Calls: q.calls, Took: took, Again: q.ask.Again, Err: err}
	for _, p := range q.leases {
		q.limits = append(q.limits, LimitCall{Limit: &p.spec().limit})
	}
	if err == nil {
		e.Granted = q.ask.Granted
		for i := range q.limits {
			q.limits[i].Units, q.limits[i].Leased = e.Granted*q.ask.Claims[i].Cost, q.ask.Grants[i].Extra
		}
		for i := range q.ask.Settle {
			e.Back += q.ask.Settle[i].Back
		}
	}
	e.Limits = q.limits
	q.group.fleet.o.Events.Called(e)
}
