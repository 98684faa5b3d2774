package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
)

// errMoved ends the wait of calls for which other limits are in force.
var errMoved = errors.New("other limits are in force")

// stand waits in line for the call's turn, until the instant at most. It says what time it
// is then.
func (p *Permit) stand(ctx context.Context, now, until time.Duration, c *Call) (step, time.Duration, error) {
	if p.why < 0 {
		d, at, err := p.askStoreFirst(ctx, now, c.Priority)
		if now = at; err != nil || d.kind != stepLine {
			return d, now, err
		}
	}
	s := p.newStander(until, c)
	for {
		place, err := p.u.lines.Wait(ctx, now, &s.call, s.spot(now))
		now = p.u.clock.Now()
		p.limits, p.why = s.limits, int32(s.at)
		d := step{kind: stepLine}
		switch {
		case err == nil && s.call.Away():
			d, now, err = p.fetchInTurn(ctx, now, s, c.Priority)
		case err == nil:
			return goOn, now, nil
		case errors.Is(err, line.ErrRefused):
			d, now, err = p.ends(ctx, now, s, place)
		case errors.Is(err, errOpened), errors.Is(err, errMoved):
			d, err = p.roused(now), nil
		case errors.Is(err, line.ErrLate), errors.Is(err, line.ErrFull), now >= until: // its context's end may have been its deadline
			return p.tooLate(now, s, place), now, nil
		}
		if err != nil || d.kind != stepLine {
			return d, now, err
		}
		s.limits = p.limits
	}
}

// askStoreFirst asks the store for what it has now, together with all who ask at
// the same time. What is not there is waited for in line.
func (p *Permit) askStoreFirst(ctx context.Context, now time.Duration, prio limit.Priority) (step, time.Duration, error) {
	p.u.asks(now)
	v, opened, err := p.fetchLimits(ctx, now, now, prio)
	now = p.u.clock.Now()
	switch {
	case err != nil:
		return step{}, now, err
	case opened:
		if d := p.roused(now); d.kind != stepLine {
			return d, now, nil
		}
	case v.OK:
		if v = p.limits.Take(now, 0); v.OK {
			return goOn, now, nil
		}
	}
	if p.why = int32(v.Why); v.Ask || opened {
		p.why = p.shared()
	}
	return step{kind: stepLine}, now, nil
}

// shared is the first charge that has to do with the store.
func (p *Permit) shared() int32 {
	for i := range p.limits.Len() {
		if p.limits.Charge(i).Registry.Shared() {
			return int32(i)
		}
	}
	return 0
}

// fetchInTurn asks the store for a call whose turn that is. A yes may have become a no of
// another limit: then it goes back to its place in line.
func (p *Permit) fetchInTurn(ctx context.Context, now time.Duration, s *stander, prio limit.Priority) (step, time.Duration, error) {
	p.u.asks(now)
	v, opened, err := p.fetchLimits(ctx, now, s.call.Until, prio)
	now = p.u.clock.Now()
	d := step{kind: stepLine}
	switch {
	case err != nil:
		d = step{}
	case opened:
		d = p.roused(now)
	case !v.OK:
		p.place, p.waiting = 1, 1
		d = p.judge(now, v)
	case p.take(now).OK:
		d = goOn
	}
	p.u.lines.Back(now, &s.call, err == nil && d.kind == stepGo)
	return d, now, err
}

// roused is what becomes of a call that was woken because its breaker opened, its limits are
// others, or nobody is to wait any more. It may be the probe, and has to stand again.
func (p *Permit) roused(now time.Duration) step {
	if d := p.hears(now); d.refused() {
		return d
	}
	if p.moved() {
		return step{kind: stepMove}
	}
	return step{kind: stepLine}
}

// ends is what becomes of the first of a line that is not to wait there.
func (p *Permit) ends(ctx context.Context, now time.Duration, s *stander, at line.Place) (step, time.Duration, error) {
	left := max(0, s.call.Until-now)
	switch v := s.verdict; {
	case s.stop.wait > 0:
		if d := p.askPause(now, s.stop, left); d.refused() {
			return d, now, nil
		}
		return p.rests(ctx, s.stop.wait)
	case s.over(now):
		return p.roused(now), now, nil
	case v.Wait > left:
		p.place, p.waiting = 1, int32(at.Waiting)
		return p.judge(now, v), now, nil
	}
	return p.turn(now, left), now, nil
}

// rests waits for the end of a pause, or until it is lifted, out of the way of those whom it
// does not concern.
func (p *Permit) rests(ctx context.Context, d time.Duration) (step, time.Duration, error) {
	opened, err := p.u.sleep(ctx, p.breaker, min(d, nap))
	now := p.u.clock.Now()
	if opened && err == nil {
		return p.roused(now), now, nil
	}
	return step{kind: stepLine}, now, err
}

// tooLate refuses a call whose turn did not come in time, or cannot. It would have
// come when all before it had gone, at the rate of the limit.
func (p *Permit) tooLate(now time.Duration, s *stander, at line.Place) step {
	p.place, p.waiting = int32(at.Place), int32(at.Waiting)
	if p.guessed {
		p.limits.Fit(now) // to what the limit has become meanwhile
	}
	c := p.limits.Charge(s.at)
	wait := max(at.Due-now, c.Registry.Get(now, c.Key).After(now, at.Units, c.Cost))
	if wait <= 0 { // there is enough, for which nobody has asked yet
		wait = takes(now, &p.limits, s.at)
	}
	w := p.limits.Lacks(now, s.at)
	return p.judge(now, limit.Verdict{Wait: max(wait, w.Wait), Cause: limit.Cause{Why: s.at, Lack: w.Lack}})
}

// kick has those ask again who wait for what the call was charged to: some of it came back,
// or its rate is another.
func (p *Permit) kick(u *Upstream, now time.Duration) {
	if u.lines.Empty() {
		return
	}
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		u.lines.KickOne(now, lineKey{c.Registry, c.Key})
	}
}
