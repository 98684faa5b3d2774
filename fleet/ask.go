package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir/limit"
)

// ErrAsk is what Take returns for an ask that no store can execute. Nothing was
// changed.
var ErrAsk = errors.New("ask is not valid")

// Check reports the first mistake in an ask. Every store refuses what it refuses: an ID of 0, numbers below 0, rules that
// were not made as those of MeterOf and RingOf are, and two claims of one limit and key.
func (a *Ask) Check() error {
	if a.ID == 0 {
		return fmt.Errorf("%w: id 0: give each request a unique id", ErrAsk)
	}
	if a.Copies < 0 {
		return fmt.Errorf("%w: %d copies: must not be negative", ErrAsk, a.Copies)
	}
	for i := range a.Claims {
		if err := a.checkClaim(i); err != nil {
			return fmt.Errorf("%w: claim %d: %w", ErrAsk, i, err)
		}
	}
	for i := range a.Settle {
		s := &a.Settle[i]
		err := s.Rule.check()
		if s.Back < 0 || s.Owe < 0 || s.Pause < 0 {
			err = fmt.Errorf("back %d, owe %d, pause %v: must not be negative", s.Back, s.Owe, s.Pause)
		}
		if err != nil {
			return fmt.Errorf("%w: settlement %d: %w", ErrAsk, i, err)
		}
	}
	return nil
}

// checkClaim is the first mistake in claim i, and in how it goes with those before it.
func (a *Ask) checkClaim(i int) error {
	k := &a.Claims[i]
	if err := k.Rule.check(); err != nil {
		return err
	}
	if k.Cost < 0 || k.Extra < 0 {
		return fmt.Errorf("cost %d, extra %d: must not be negative", k.Cost, k.Extra)
	}
	if k.Rule.Shape == limit.Calendar && (!k.Start.Before(k.End) || !k.End.Before(k.Next)) {
		return fmt.Errorf("windows from %v to %v to %v: must follow each other", k.Start, k.End, k.Next)
	}
	for j := range a.Claims[:i] {
		if o := &a.Claims[j]; o.Key == k.Key && o.Rule.Name == k.Rule.Name {
			return fmt.Errorf("limit %q is claimed twice for one key: add up the costs", k.Rule.Name)
		}
	}
	return nil
}

// check: a rule that was not made by MeterOf and RingOf might divide by nothing.
func (r *Rule) check() error {
	switch {
	case r == nil:
		return errors.New("no rule")
	case r.Shape == limit.Bucket && (r.Meter.Unit <= 0 || r.Meter.Drain <= 0):
		return fmt.Errorf("limit %q: meter %+v: make it by bucket.MeterOf", r.Name, r.Meter)
	case r.Shape == limit.Rolling && r.Ring.Grain <= 0:
		return fmt.Errorf("limit %q: ring %+v: make it by bucket.RingOf", r.Name, r.Ring)
	case r.Hold < 0:
		return fmt.Errorf("limit %q: hold %d: must not be negative", r.Name, r.Hold)
	case r.Shape > limit.Calendar:
		return fmt.Errorf("limit %q: %v", r.Name, r.Shape)
	}
	return nil
}

// Fits reports whether the store's present, in microseconds, is in the windows that
// the claims name: it is nil or ErrWindow. A process whose clock is behind, or one that was asked just before midnight,
// asks again by the windows of the store's clock.
func (a *Ask) Fits(now int64) error {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Rule.Shape == limit.Calendar && (now < c.Start.UnixMicro() || now >= c.Next.UnixMicro()) {
			return ErrWindow
		}
	}
	return nil
}

// Answer decides an ask from the cells of its claims, changes them, and writes the
// answer. With Cell.Settle before it, it is the whole arithmetic of a store that
// holds its state as Cells. The ask must have passed Check and Fits, and cells are those of its claims, in their order.
//
// How many copies go is what the scarcest limit bears, so that no limit is charged for a copy that another one refuses.
// Extra is granted only if that was all of them: where calls wait, nobody gets something to spend later.
func (a *Ask) Answer(at *Supply, cells []*Cell) {
	a.Granted = a.Copies
	for i, c := range cells {
		a.Granted = min(a.Granted, c.copies(at, &a.Claims[i]))
	}
	a.Grants = a.Grants[:0]
	for i, c := range cells {
		k := &a.Claims[i]
		c.add(at, k.Rule, a.Granted*k.Cost)
		var extra int64
		if a.Granted == a.Copies && c.Paused <= at.Now {
			extra = min(k.Extra, c.left(at, k.Rule)/4)
			c.add(at, k.Rule, extra)
		}
		a.Grants = append(a.Grants, c.grant(at, k, extra))
	}
}

// repeat writes the answer that an ask has had already, whatever has become of its limits since: it may be used, for as long as
// the first answer may. Marks are not given twice:
// what came back by both would be counted twice.
func (a *Ask) repeat(granted int64, grants []Grant) {
	a.Granted = granted
	a.Grants = append(a.Grants[:0], grants...)
	for i := range a.Grants {
		a.Grants[i].Mark = Mark{}
	}
}

// granted reports whether the store granted anything.
func (a *Ask) granted() bool {
	return a.Granted > 0 || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.Extra > 0 })
}
