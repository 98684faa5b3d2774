package weir

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// lineKey names what a line is for.
type lineKey struct {
	registry *limit.Registry
	key      string
}

const (
	// mostMoves is how often a call goes from the line of one of its limits to that of
	// another. After that it books its turns as they come: two limits that run out in turn
	// must not send it to and fro.
	mostMoves = 4

	// So many at least and at most ask the store at once for a limit that a fleet
	// shares. They are combined into one call; one alone would get a unit for each of
	// them. But who is among them has come in turn and goes in no order any more, so
	// that there are not many more than can go while a slow store answers.
	fewestShared, mostShared = 2, 16
	slowAnswer               = 10 * time.Millisecond
)

// errMoved ends the wait of calls for which other limits are in force.
var errMoved = errors.New("other limits are in force")

// A stander is a call that waits for its limits. It does not hold its permit: that would
// move to the heap, that of calls that never wait too.
type stander struct {
	call line.Call
	concern
	breaker *breaker.Breaker
	charged charged
	limits  limit.Permit
	guessed bool
	guess   bool // its cost is one
	at      int  // the charge in whose line it stands
	moves   int

	verdict limit.Verdict // what the limits said last
	stop    stop          // what holds it, whatever they say
}

// newStander has p's limits, which hold nothing, until p takes them back.
func (p *Permit) newStander(until time.Duration, c *Call) *stander {
	s := &stander{
		concern: p.concern(), breaker: p.breaker, charged: p.charged(), limits: p.limits, guessed: p.guessed, guess: c.Estimated, at: int(p.why),
	}
	s.call = line.Call{
		Asker: s, Flow: boundedKey(cmp.Or(c.Flow, c.Keys[p.by.live.policy.Fair.By])),
		Lane: int(limit.High) - int(c.Priority), Weight: c.Weight, Until: until,
	}
	return s
}

// Ask is the line's: it is on another goroutine's stack at times. It takes all that the call
// costs, or nothing.
func (s *stander) Ask(now, since time.Duration) line.Step {
	if s.stop = s.concern.stopped(now, &s.limits, false); s.stop.wait > 0 || s.over(now) {
		return line.Step{Kind: line.Refuse} // those behind it may have nothing to do with that
	}
	v := s.take(now, since)
	s.verdict = v
	shared := s.shared(v.Why)
	switch left := s.call.Until - now; {
	case v.OK:
		return line.Step{Kind: line.Go}
	case v.Ask, shared && v.Wait <= left:
		return line.Step{Kind: line.Away, Room: s.room(now)}
	case v.Wait > left, v.Why != s.at && s.moves == mostMoves:
		return line.Step{Kind: line.Refuse}
	case v.Why != s.at:
		s.moves++
		s.at = v.Why
		return line.Step{Kind: line.Move, Spot: spot(now, &s.limits, s.at)}
	}
	return line.Step{Kind: line.Wait, For: v.Wait, Again: nap}
}

// over reports whether the call need not wait here any more.
func (s *stander) over(now time.Duration) bool {
	v := s.u.live.Load()
	return s.u.drains.Load() || isOpen(now, s.breaker) || v != s.charged.by.live && s.charged.moved(v)
}

func (s *stander) take(now, since time.Duration) limit.Verdict {
	v := s.limits.TakeSince(now, since, s.at)
	if !v.OK && v.Wait == bucket.Never && s.guessed && s.limits.Fit(now) {
		v = s.limits.TakeSince(now, since, s.at)
	}
	return v
}

func (s *stander) shared(i int) bool { return s.limits.Charge(i).Registry.Shared() }

// room is how many of the line may ask the store at once.
func (s *stander) room(now time.Duration) int {
	if !s.shared(s.at) {
		return 1
	}
	return min(fewestShared+int(slowAnswer/max(takes(now, &s.limits, s.at), 1)), mostShared)
}

// spot is the line of a charge.
func spot(now time.Duration, p *limit.Permit, i int) line.Spot {
	c := p.Charge(i)
	return line.Spot{Key: lineKey{c.Registry, c.Key}, Cost: takes(now, p, i), Steady: c.Registry.Limit().Shape == limit.Bucket}
}

// takes is how long it takes until as much comes of a limit as the call costs, an
// hour at most.
func takes(now time.Duration, p *limit.Permit, i int) time.Duration {
	c := p.Charge(i)
	rate := p.Look(now, i).PerSecond
	if !(rate > 0) {
		rate = c.Registry.Limit().PerSecond()
	}
	return time.Duration(min(float64(c.Cost)/rate*float64(time.Second), float64(time.Hour)))
}

// turn is askLimits for who may have to stand in line.
func (p *Permit) turn(now, patience time.Duration) step {
	if p.moved() {
		return step{kind: stepMove}
	}
	if patience > 0 && p.by.fair && !p.books {
		return p.askInTurn(now, patience)
	}
	return p.askLimits(now, patience)
}

// askInTurn takes what is there, unless somebody waits for it already.
func (p *Permit) askInTurn(now, patience time.Duration) step {
	if p.u.pauses.Any(now) {
		if s := p.stopped(now); s.wait > 0 {
			return p.askPause(now, s, patience)
		}
	}
	if p.u.lines.Empty() || !p.behind(now) {
		v := p.take(now, 0)
		switch {
		case v.OK:
			return goOn
		case v.Ask:
			p.why = -1
		case v.Wait > patience:
			return p.judge(now, v)
		default:
			p.why = int32(v.Why)
		}
	}
	return step{kind: stepLine}
}

// behind reports whether somebody waits for what the call is charged to, and notes
// where most do. What can never be met is nobody's turn.
func (p *Permit) behind(now time.Duration) bool {
	found, most := false, time.Duration(-1)
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		switch {
		case c.Cost == 0:
			continue
		case c.Cost < 0 || c.Cost > c.Registry.Most(now, c.Key):
			return false
		}
		if cost, ok := p.u.lines.Busy(lineKey{c.Registry, c.Key}); ok && cost > most {
			found, most, p.why = true, cost, int32(i)
		}
	}
	return found
}

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
		place, err := p.u.lines.Wait(ctx, now, &s.call, spot(now, &s.limits, s.at))
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
	case p.take(now, 0).OK:
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
	p.books = true
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
	wait := c.Registry.Get(now, c.Key).Ask(now, c.Cost)
	if c.Registry.Limit().Shape != limit.Fixed { // of which all comes at once
		wait = max(wait, max(0, at.Due-now)+at.Ahead+takes(now, &p.limits, s.at))
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
