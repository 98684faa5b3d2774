package weir

import (
	"strings"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A dearError is the error of a call that no wait makes affordable: it may cost more than a complete budget, or has no
// price. It is an ErrTooMuch with its own text.
type dearError string

func (e dearError) Error() string { return string(e) }
func (e dearError) Unwrap() error { return ErrTooMuch }

// tooDear returns the error of a call that costs more than a budget, or whose cost below 0 means that it has no price.
func tooDear(r *Refusal, cost int64) error {
	b := new(strings.Builder)
	b.WriteString(strings.TrimSpace(r.Upstream + " " + r.Operation))
	if cost < 0 {
		b.WriteString(": the model has no price, and limit " + r.Limit + " counts dollars: add the model, or \"*\" for all others, to the file that prices names")
	} else {
		b.WriteString(": the call may cost " + limit.Dollars(cost) + " USD, and limit " + r.Limit + " allows " + limit.Dollars(r.Level.Full) + " USD: ask for a shorter answer, or raise the limit")
	}
	return dearError(b.String())
}

// budget appends the state of the budget that refused: either it is spent, or calls in flight hold the rest.
func (r *Refusal) budget(b []byte) []byte {
	if !r.Rule.IsBudget() || r.Want.Lack != limit.LacksNothing {
		return b
	}
	left, held, full := r.Level.Left, r.Level.Held, r.Level.Full
	switch r.Reason {
	case QuotaExhausted:
		b = append(b, ": the budget is spent: "...)
		b = append(append(b, limit.Dollars(full-left-held)...), " of "...)
		b = append(append(b, limit.Dollars(full)...), " USD"...)
	case RateLimited:
		b = append(append(b, ": "...), limit.Dollars(left+held)...)
		b = append(append(b, " USD are not spent, but calls in flight hold "...), limit.Dollars(held)...)
		b = append(b, " of it"...)
	default:
		return b
	}
	for i := range r.Levels {
		if l := &r.Levels[i]; l.Rule.Name == r.Limit && l.Key == r.Key {
			b = append(append(append(b, "; the call needs "...), limit.Dollars(l.Cost)...), " USD"...)
		}
	}
	return b
}

// budgets returns the state of the limits in dollars of the call.
func (a *account) budgets(now time.Duration) []LimitLevel {
	var all []LimitLevel
	for i := range a.limits.Len() {
		c := a.limits.Charge(i)
		if l := c.Registry.Limit(); l.IsBudget() {
			all = append(all, LimitLevel{Rule: *l, Key: c.Key, Cost: c.Cost, Level: a.limits.Look(now, i)})
		}
	}
	return all
}

// Budgets returns the state of the limits in dollars that the attempt is charged to; nil once it has been reported.
func (p *Permit) Budgets() []LimitLevel {
	if p.u == nil || !p.by.budgets {
		return nil
	}
	return p.budgets(p.u.clock.Now())
}
