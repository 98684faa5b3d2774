package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/fair"
)

// Fair has calls that must wait for a limit go in turn, flow by flow: one who sends
// a thousand calls at once makes nobody else wait for all of them. The zero Fair is
// off: then those who wait go in the order in which they came.
//
// Calls stand in line before they book a turn, one line for each limit and key that
// somebody waits for, so that whoever is held by a limit of its own stands in
// nobody's way. Only the call at the head of a line asks the limits, and it yields to
// one that comes later and is before it in turn. Within a line what counts is the cost
// in the limit's unit: a call of 8,000 tokens takes as much of a flow's share of a
// token limit as sixteen of 500.
type Fair struct {
	By      string      // the scope whose values are the flows ("user"); "" turns it off
	Weights LaneWeights // of the priorities

	Longest int // most calls that wait, all together; the next are refused at once. 0 means 10,000
	PerFlow int // most calls of one flow that wait; 0 means 1,000
}

// LaneWeights are how those of each priority share a limit while all have somebody
// waiting: each gets its weight's part, however many flows it has. 0 means 16, 4 and
// 1: four times what the next one gets, and a 21st for the lowest, which is slow but
// never stands still.
type LaneWeights struct{ High, Normal, Low int }

// queues is the part of it that the queues want to know.
func (f Fair) queues() fair.Config {
	w := f.Weights
	return fair.Config{Weights: [fair.Lanes]int{w.High, w.Normal, w.Low}, Longest: f.Longest, PerFlow: f.PerFlow}
}

func (f Fair) withDefaults() Fair {
	if f.By == "" {
		return f
	}
	c := f.queues().WithDefaults()
	f.Weights = LaneWeights{c.Weights[0], c.Weights[1], c.Weights[2]}
	f.Longest, f.PerFlow = c.Longest, c.PerFlow
	return f
}

func (f Fair) validate() error {
	if f.By == "" && f != (Fair{}) {
		return errors.Join(fmt.Errorf("by %q: name the scope whose values are to wait in turn, such as user", f.By), f.queues().Validate())
	}
	return f.queues().Validate()
}

// lineKey names what a line is for.
type lineKey struct {
	registry *limit.Registry
	key      string
}

const (
	// mostMoves is how often a call that has come to the head of one line goes to the
	// end of its flow in another. After that it books its turns as they come: two
	// limits that run out in turn must not send it to and fro.
	mostMoves = 4

	// So many at least and at most ask the store at once for a limit that a fleet
	// shares. They are combined into one call; one alone would get a unit for each of
	// them. But who is among them has come in turn and goes in no order any more, so
	// that there are not many more than can go while a slow store answers.
	fewestShared, mostShared = 2, 16
	slowAnswer               = 10 * time.Millisecond
)

// turn is askLimits for who may have to stand in line.
func (p *Permit) turn(now, patience time.Duration) step {
	if p.moved() {
		return step{kind: stepMove}
	}
	if patience > 0 && p.by.fair {
		return p.askInTurn(now, patience)
	}
	return p.askLimits(now, patience)
}

// askInTurn takes what is there, unless somebody waits for it already.
func (p *Permit) askInTurn(now, patience time.Duration) step {
	if s := p.stopped(now); s.wait > 0 {
		return p.askPause(now, s, patience)
	}
	if p.u.queues.Empty() || !p.behind(now) {
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
		if cost, ok := p.u.queues.Busy(lineKey{c.Registry, c.Key}); ok && cost > most {
			found, most, p.why = true, cost, int32(i)
		}
	}
	return found
}

// spot is the line of a charge.
func (p *Permit) spot(now time.Duration, i int) fair.Spot[lineKey] {
	c := p.limits.Charge(i)
	l := c.Registry.Limit()
	s := fair.Spot[lineKey]{Key: lineKey{c.Registry, c.Key}, Cost: p.takes(now, i), Room: 1, Steady: l.Shape == limit.Bucket}
	if c.Registry.Shared() {
		s.Room = min(fewestShared+int(slowAnswer/max(s.Cost, 1)), mostShared)
	}
	return s
}

// takes is how long it takes until as much comes of a limit as the call costs, an
// hour at most.
func (p *Permit) takes(now time.Duration, i int) time.Duration {
	c := p.limits.Charge(i)
	rate := p.limits.Look(now, i).PerSecond
	if !(rate > 0) {
		rate = c.Registry.Limit().PerSecond()
	}
	return time.Duration(min(float64(c.Cost)/rate*float64(time.Second), float64(time.Hour)))
}

// A stander is a call that stands in line. It does not hold its permit: that would
// move to the heap, that of calls that never wait too.
type stander struct {
	w          *fair.Waiter[lineKey]
	at         int // the charge in whose line it stands
	moves      int
	now, until time.Duration
	priority   limit.Priority
	guess      bool // its cost is one
}

// stand waits in line and then for the call's turn, until the instant at most. It
// says what time it is then. What it was told to wait for may be a pause.
func (p *Permit) stand(ctx context.Context, now, until time.Duration, c *Call) (step, time.Duration, error) {
	inner, opens, done := p.u.hearing(ctx, p.breaker)
	defer done()
	if opens.goesBy(p.charged()); p.moved() {
		return step{kind: stepMove}, now, nil
	}
	d, now, err := p.standIn(inner, now, until, c)
	if err != nil && opens.opened.Load() && ctx.Err() == nil {
		if d = p.hears(now); !d.refused() { // it may be the probe, and has to stand again
			d = step{kind: stepLine}
		}
		return d, now, nil
	}
	return d, now, err
}

func (p *Permit) standIn(ctx context.Context, now, until time.Duration, c *Call) (step, time.Duration, error) {
	s := stander{now: now, until: until, priority: c.Priority, guess: c.Estimated}
	if p.why < 0 {
		if got, err := p.askStoreFirst(ctx, &s); err != nil {
			return step{}, s.now, err
		} else if got {
			return goOn, s.now, nil
		}
	}
	s.at = int(p.why)
	call := fair.Call{
		Flow: tame(cmp.Or(c.Flow, c.Keys[p.by.live.policy.Fair.By])), Lane: int(limit.High) - int(c.Priority), Weight: c.Weight, Until: until,
	}
	w, place, ok := p.u.queues.Enter(s.now, call, p.spot(s.now, s.at))
	if !ok {
		return p.tooLate(&s, place), s.now, nil
	}
	s.w = w
	d, err := p.waitInLine(ctx, &s)
	p.u.queues.Leave(w, err == nil && d.kind == stepGo)
	return d, s.now, err
}

// askStoreFirst asks the store for what it has now, together with all who ask at
// the same time.
func (p *Permit) askStoreFirst(ctx context.Context, s *stander) (got bool, err error) {
	p.u.asks(s.now)
	v, err := p.limits.Fetch(ctx, s.now, s.now, s.priority)
	s.now = p.u.clock.Now()
	if err == nil && v.OK {
		v = p.limits.Take(s.now, 0)
		got = v.OK
	}
	if p.why = int32(v.Why); v.Ask {
		p.why = p.shared()
	}
	return got, err
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

// waitInLine waits to become the head of a line, and then asks.
func (p *Permit) waitInLine(ctx context.Context, s *stander) (step, error) {
	for {
		place, err := s.w.Wait(ctx)
		s.now = p.u.clock.Now()
		switch {
		case errors.Is(err, fair.ErrLate):
			return p.tooLate(s, place), nil
		case err != nil:
			return step{}, err
		case ctx.Err() != nil:
			return p.leaves(ctx, s)
		}
		if d, moved, err := p.lead(ctx, s); !moved {
			return d, err
		}
	}
}

// leaves ends the wait of a head whose context has ended: if that was its deadline, it
// is told where it stood.
func (p *Permit) leaves(ctx context.Context, s *stander) (step, error) {
	if s.now < s.until {
		return step{}, context.Cause(ctx)
	}
	return p.tooLate(s, s.w.Here()), nil
}

// lead asks as the head of a line until it has what the call costs. What it waits
// for then may be another limit, whose line it has to stand in.
func (p *Permit) lead(ctx context.Context, s *stander) (d step, moved bool, err error) {
	for {
		if d = p.mayAsk(s); d.refused() {
			return d, false, nil
		}
		if p.moved() {
			return step{kind: stepMove}, false, nil
		}
		if d.kind == stepWait { // a pause, which may not be that of those behind
			p.limits.Drop(s.now)
			return d, false, nil
		}
		v, err := p.askAtHead(ctx, s)
		switch {
		case err != nil:
			return step{}, false, err
		case !v.OK && v.Ask:
			continue
		case !v.OK:
			return p.refused(s, v), false, nil
		case v.Wait == 0:
			return goOn, false, nil
		case v.Why != s.at && !p.move(s, v.Why):
			return d, true, nil
		}
		if !s.w.Booked(s.now, s.now+v.Wait) {
			p.limits.Drop(s.now)
			s.w.Yield()
			return d, true, nil
		}
		if err := p.sleep(ctx, s, v.Wait); err != nil {
			d, err = p.leaves(ctx, s)
			return d, false, err
		}
		// What came back meanwhile may let it go sooner; and where costs are guesses, what
		// was used beyond them may not let it go yet.
		if v.Wait > nap || s.guess {
			p.limits.Drop(s.now)
		}
	}
}

// mayAsk asks what may have changed while the call stood in line: the breaker, and
// whether the operation or the pool is paused.
func (p *Permit) mayAsk(s *stander) step {
	d := p.reconsider(s.now)
	if d.refused() {
		return d
	}
	if held := p.stopped(s.now); held.wait > 0 {
		return p.askPause(s.now, held, max(0, s.until-s.now))
	}
	return d
}

// askAtHead asks the limits, and the store if it has to be. A no that is to ask may
// have become a yes.
func (p *Permit) askAtHead(ctx context.Context, s *stander) (limit.Verdict, error) {
	v := p.take(s.now, max(0, s.until-s.now))
	if !v.Ask {
		return v, nil
	}
	p.u.asks(s.now)
	v, err := p.limits.Fetch(ctx, s.now, s.until, s.priority)
	s.now = p.u.clock.Now()
	return limit.Verdict{Ask: v.OK, Wait: v.Wait, Cause: v.Cause}, err
}

// sleep sleeps, but not so long that a change of policy or breaker goes unnoticed.
func (p *Permit) sleep(ctx context.Context, s *stander, d time.Duration) error {
	err := s.w.Sleep(ctx, min(d, nap))
	s.now = p.u.clock.Now()
	return err
}

// move stands in the line of another limit, for which the call has to wait now. It
// reports whether it is at the head there; if not, it holds nothing any more.
func (p *Permit) move(s *stander, to int) bool {
	s.moves++
	s.at, p.why = to, int32(to)
	if p.u.queues.Move(s.now, s.w, p.spot(s.now, to), s.moves > mostMoves) {
		return true
	}
	p.limits.Drop(s.now)
	return false
}

// refused is the step of the limits' no to a head.
func (p *Permit) refused(s *stander, v limit.Verdict) step {
	p.place, p.waiting = 1, int32(s.w.Here().Waiting)
	return p.judge(s.now, v)
}

// tooLate refuses a call whose turn did not come in time, or cannot. It would have
// come when all before it had gone, at the rate of the limit.
func (p *Permit) tooLate(s *stander, at fair.Place) step {
	p.place, p.waiting = int32(at.Place), int32(at.Waiting)
	if p.guessed {
		p.limits.Fit(s.now) // to what the limit has become meanwhile
	}
	c := p.limits.Charge(s.at)
	wait := c.Registry.Get(s.now, c.Key).Ask(s.now, c.Cost)
	if c.Registry.Limit().Shape != limit.Fixed { // of which all comes at once
		wait = max(wait, max(0, at.Due-s.now)+at.Ahead+p.takes(s.now, s.at))
	}
	w := p.limits.Lacks(s.now, s.at)
	return p.judge(s.now, limit.Verdict{Wait: max(wait, w.Wait), Cause: limit.Cause{Why: s.at, Lack: w.Lack}})
}
