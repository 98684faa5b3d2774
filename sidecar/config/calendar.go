package config

import (
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// isCalendar reports whether a limit is one by the calendar. It is if it says so, by
// shape or by a field that no other has.
func isCalendar(n *node, l *pace) bool {
	return n.Get("every") != nil || n.Get("amount") != nil || n.Get("shape") != nil && l.Shape == limit.Calendar
}

// byCalendar is what a limit by the calendar must say and must not; good says that its
// fields are fine by themselves.
func (d *decoder) byCalendar(n *node, l *pace, good bool) {
	rate, shape, every, amount := n.Get("rate"), n.Get("shape"), n.Get("every"), n.Get("amount")
	switch {
	case rate != nil:
		d.rated(rate, every, amount)
	case !good: // one complaint is enough
	case l.Shape != limit.Calendar && shape != nil:
		d.Bad(shape, "leave it out", "calendar windows have the shape fixed")
	case every == nil:
		d.Bad(n, "write every: day", "has an amount without a window")
	case amount == nil:
		d.Bad(n, "write amount: 25", "has no amount")
	}
	l.Shape, l.Rate.Per = limit.Calendar, 0
	if l.Amount <= 0 || !l.Every.Valid() {
		l.Amount, l.Every = 1, bucket.Day
	}
}

// rated is said of a limit by the calendar that has a rate.
func (d *decoder) rated(rate, every, amount *node) {
	switch {
	case !inherited(rate) && (inherited(every) || inherited(amount)):
		d.Bad(rate, "write amount: 50, or also set shape: bucket", "the preset's limit is a calendar limit: it has an amount and no rate")
	case inherited(rate) && amount != nil && every == nil:
		d.Bad(amount, "also write every: day", "the preset has a rate; amount is for calendar limits")
	default:
		d.Bad(rate, "write amount: 25 and every: day instead", "a calendar limit has no rate")
	}
}

// oneShape keeps the limits of an upstream from having a rate and a calendar, one of
// them from the preset: what the upstream says itself counts. A file that says a
// rate where the preset has a calendar must say its shape, too: 50/day, written to have more than
// the preset's quota, would be a bucket that no midnight fills. And where the file says a rate,
// the upstream is not asked for one.
func oneShape(base, own *node) {
	for _, o := range own.Get("limits").All() {
		b := base.Get("limits").Get(o.Name)
		if b != nil && (o.Value.Get("rate") != nil || o.Value.Get("every") != nil) {
			drop(b, "advertised")
		}
		switch {
		case b == nil:
		case o.Value.Get("every") != nil:
			drop(b, "rate", "burst", "shape", "adaptive")
		case o.Value.Get("rate") != nil && o.Value.Get("shape") != nil:
			drop(b, "amount", "every", "zone", "shape")
		}
	}
}
