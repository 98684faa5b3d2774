package config

import (
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// isCalendar reports whether a limit is a calendar limit, by its shape or by a field that only calendar limits have.
func isCalendar(n *node, l *pace) bool {
	return n.Get("every") != nil || n.Get("amount") != nil || n.Get("shape") != nil && l.Shape == limit.Calendar
}

// byCalendar checks which fields a calendar limit has. good means that each field is valid by itself.
func (d *decoder) byCalendar(n *node, l *pace, good bool) {
	rate, shape, every, amount := n.Get("rate"), n.Get("shape"), n.Get("every"), n.Get("amount")
	switch {
	case rate != nil:
		d.rated(rate, every, amount)
	case !good: // one error is enough
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

// rated reports the rate of a calendar limit as an error.
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

// oneShape keeps a limit from having both a rate and a calendar when one of them comes from the preset. The
// upstream's own fields win. If the file sets a rate and the preset has a calendar limit, the file must also set the
// shape. Otherwise 50/day, written to raise the preset's quota, would become a bucket that is not refilled at
// midnight. If the file sets a rate, the limit that the upstream advertises is ignored.
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
