package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
)

// A change is a new entry that this process proposes for a seat.
type change struct {
	seat  *seat
	entry entry
	own   uint32 // the generation of the breaker that says so
	adopt bool   // the breaker follows once it is agreed
}

// tries is how often a swap is repeated when others were faster, in one round.
const tries = 5

// pull looks at what the store has.
func (b *Breakers) pull(ctx context.Context) error {
	before := b.Clock.Now()
	calling, cancel := b.calling(ctx)
	defer cancel()
	b.counts.loads.Add(1)
	records, present, err := b.Store.Load(calling, b.Group, b.names)
	if err != nil {
		return fmt.Errorf("look at breakers: %w", err)
	}
	after := b.Clock.Now()
	// The store read its clock at some instant between the two.
	at := time.Duration(present.UnixMicro()) * time.Microsecond
	b.lo, b.hi = at-after, at+time.Microsecond-before
	b.looked, b.pullAt = after, after+poll/2+b.upTo(poll)
	return b.read(records, at)
}

func (b *Breakers) read(records []limit.Record, at time.Duration) (err error) {
	for _, r := range records {
		for _, p := range b.pages {
			if p.name == r.Name {
				if e := p.read(r, at); e != nil {
					err = e
				}
			}
		}
	}
	return err
}

// agree has every breaker follow what the fleet has decided, and proposes to the
// fleet what was decided here.
func (b *Breakers) agree(ctx context.Context) error {
	for _, p := range b.pages {
		if err := b.agreeOn(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *Breakers) agreeOn(ctx context.Context, p *page) error {
	for range tries {
		changes := b.changes(p)
		if len(changes) == 0 && !p.lost {
			return nil
		}
		if b.Clock.Now()-b.looked > gap { // most likely another has said the same
			if err := b.pull(ctx); err != nil {
				return err
			}
			continue
		}
		done, err := b.swap(ctx, p, changes)
		if done || err != nil {
			return err
		}
	}
	return nil // the next round goes on
}

func (b *Breakers) changes(p *page) (all []change) {
	now := b.Clock.Now()
	for _, t := range b.seats {
		if t.page != p {
			continue
		}
		if c, ok := b.settle(now, t); ok {
			all = append(all, c)
		}
	}
	return all
}

func (b *Breakers) swap(ctx context.Context, p *page, changes []change) (done bool, err error) {
	at := b.Clock.Now() + b.lo
	next, raw, err := p.with(changes, at)
	if err != nil {
		return false, err
	}
	calling, cancel := b.calling(ctx)
	defer cancel()
	b.counts.swaps.Add(1)
	r, ok, err := b.Store.Swap(calling, b.Group, limit.Record{Name: p.name, Version: p.version, Value: raw, Keep: keep})
	switch {
	case err != nil:
		return false, fmt.Errorf("change breakers: %w", err)
	case !ok:
		b.counts.conflicts.Add(1)
		return false, p.read(r, at)
	}
	p.content, p.version, p.raw, p.lost = next, r.Version, raw, false
	now := b.Clock.Now()
	for i := range changes {
		b.agreed(now, &changes[i])
	}
	return true, nil
}

// agreed is what follows from a change that the fleet has taken over.
func (b *Breakers) agreed(now time.Duration, c *change) {
	t := c.seat
	if c.adopt {
		b.follow(now, t, &c.entry, c.own)
		return
	}
	t.followed(now, c.own, &c.entry, b)
}

// settle compares a breaker with what the fleet says of it. Either the breaker
// follows, or there is something to propose.
func (b *Breakers) settle(now time.Duration, t *seat) (c change, ok bool) {
	e := t.page.of(t.name, now+b.lo)
	if t.full && e.Gen <= t.gen && !e.matters() {
		t.b.Trip(now, t.hint)
	}
	t.full = false
	s := t.b.State()
	moved := s.Gen != t.own
	switch {
	case t.b.Config().Off && !s.Held && !e.Held: // it has no part in it
		t.own, t.gen, t.failed, t.full = s.Gen, 0, 0, false
		return c, false
	case moved && byHand(&s):
		return b.says(now, t, &s), true
	case e.Gen > t.gen && t.gen == 0 && !moved && !e.matters(): // nobody knows of anything
		t.followed(now, s.Gen, &e, b)
	case e.Gen > t.gen && !(moved && b.newer(&s, &e)):
		b.follow(now, t, &e, s.Gen)
		return c, false
	case moved && !b.underWay(&e, &s):
		return b.decided(now, t, &e, &s)
	case !moved && (s.Phase != e.Phase || s.Held != e.Held):
		b.follow(now, t, &e, s.Gen)
		return c, false
	}
	return b.offer(now, t, &e, &s)
}

// byHand reports whether a person brought the breaker into its phase.
func byHand(s *breaker.State) bool { return s.Why == breaker.Forced || s.Why == breaker.WasReset }

func (b *Breakers) mine(e *entry) bool { return e.Phase == breaker.HalfOpen && e.Holder == b.id }

// underWay reports whether the breaker has moved as it was to: by probing.
func (b *Breakers) underWay(e *entry, s *breaker.State) bool {
	return s.Phase == breaker.HalfOpen && b.mine(e)
}

// newer reports whether a breaker that had to decide for itself did so after the
// fleet last decided.
func (b *Breakers) newer(s *breaker.State, e *entry) bool {
	return b.returns && (s.Since+b.lo).Microseconds() > e.Gen
}

// decided is what becomes of a breaker that changed its phase by itself, in the
// generation that the fleet is in.
func (b *Breakers) decided(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	switch {
	case s.Phase == breaker.Closed && !e.matters():
		t.own = s.Gen
		return c, false
	case e.Phase == breaker.HalfOpen && !b.mine(e) && now < b.over(now, e): // another has the probe, and will know better
		b.follow(now, t, e, s.Gen)
		return c, false
	}
	return b.says(now, t, s), true
}

// says is the state of a breaker as a proposal.
func (b *Breakers) says(now time.Duration, t *seat, s *breaker.State) change {
	e := b.entry(now, t.page, s)
	if s.Phase == breaker.HalfOpen { // it probed by itself; now the fleet is to say who does
		e.Phase, e.Why, e.Until = breaker.Open, breaker.OpenTimeOver, now+b.lo
	}
	return change{t, e, s.Gen, e.Phase != s.Phase}
}

// entry is a state in the next generation of a page.
func (b *Breakers) entry(now time.Duration, p *page, s *breaker.State) entry {
	at := now + b.lo
	return entry{
		Gen: max(p.Gen+1, at.Microseconds()), Phase: s.Phase, Why: s.Why, Held: s.Held,
		Since: max(0, s.Since+b.lo), Until: b.stored(s.Until), Spell: s.Spell, Good: s.Successes, At: at,
	}
}

// offer proposes what is due in a generation in which nothing has happened.
func (b *Breakers) offer(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	lent := b.mine(e) && !s.Probing
	switch {
	case e.Held && now < t.until:
		return b.refresh(now, t, e, s)
	case e.Phase == breaker.Closed:
		return c, false
	case lent && b.leaving, lent && now >= s.Lease && now-t.wanted > fresh:
		return b.giveBack(now, t, e, s), true
	case lent && now >= s.Lease, !lent && now >= t.tries() && !b.leaving:
		return b.take(now, t, e, s), true
	}
	return c, false
}

// refreshEvery is how often what was forced is written again, that it does not
// expire while a process is there that obeys it.
const refreshEvery = 24 * time.Hour

func (b *Breakers) refresh(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	at := now + b.lo
	if at-e.At < refreshEvery {
		return c, false
	}
	next := *e
	next.At = at
	return change{t, next, s.Gen, false}, true
}

// take proposes that this process probes.
func (b *Breakers) take(now time.Duration, t *seat, e *entry, s *breaker.State) change {
	next := b.entry(now, t.page, s)
	next.Phase, next.Why, next.Held, next.Good = breaker.HalfOpen, breaker.OpenTimeOver, false, max(e.Good, s.Successes)
	if e.Phase == breaker.HalfOpen {
		next.Since = e.Since
	} else {
		next.Since, next.Good = next.At, 0
	}
	next.Holder, next.Until = b.id, next.At+grace+t.b.Config().ProbeTimeout
	return change{t, next, s.Gen, true}
}

// giveBack proposes that another process probes.
func (b *Breakers) giveBack(now time.Duration, t *seat, e *entry, s *breaker.State) change {
	next := *e
	next.At = now + b.lo
	next.Gen, next.Holder, next.Until, next.Good = max(t.page.Gen+1, next.At.Microseconds()), "", next.At, s.Successes
	return change{t, next, s.Gen, true}
}
