package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir/limit"
)

// ErrAsk reports a request that no store can execute. Nothing was changed.
var ErrAsk = errors.New("ask is not valid")

// Check returns the first mistake in a request. Every store refuses these requests: an ID of 0, negative
// numbers, rules that MeterOf or RingOf cannot have made, and two claims for one limit and key.
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

// checkClaim returns the first mistake in claim i, including conflicts with earlier claims.
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

// check refuses rules that were not made by MeterOf or RingOf, since they might cause a division by zero.
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

// Fits returns nil if the store's clock, in microseconds, is within the windows of all claims, and ErrWindow
// otherwise. A process gets ErrWindow if its clock is behind, or if the request arrives just after midnight. It
// then repeats the request with the windows of the store's clock.
func (a *Ask) Fits(now int64) error {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Rule.Shape == limit.Calendar && (now < c.Start.UnixMicro() || now >= c.Next.UnixMicro()) {
			return ErrWindow
		}
	}
	return nil
}

// Answer decides a request: it changes the cells of its claims and writes the response. Together with
// Cell.Settle it is the complete arithmetic of a store that keeps its state as Cells. The request must have
// passed Check and Fits. The cells must belong to the claims, in the same order.
//
// The scarcest limit determines the number of copies, so no limit is charged for a copy that another one
// refuses. Extra is granted only if all copies were: while calls wait, no process gets units to spend later.
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

// repeat writes the response that the first request got, even if its limits have changed since. The process may
// use the grant as long as the first one.
func (a *Ask) repeat(granted int64, grants []Grant) {
	a.Granted = granted
	a.Grants = append(a.Grants[:0], grants...)
}

// granted reports whether the store granted anything.
func (a *Ask) granted() bool {
	return a.Granted > 0 || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.Extra > 0 })
}
