package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// isBudget reports whether a limit counts dollars.
func isBudget(n *node) bool {
	at := n.Get("unit")
	return at != nil && at.Kind == doc.Scalar && strings.EqualFold(at.Text, limit.USD)
}

func readAmount(d *decoder, n *node, l *pace) {
	if l.budget {
		l.Amount, _ = dollars.read(d, n)
		return
	}
	l.Amount, _ = count[int64](1).read(d, n)
}

// dollars reads an amount of money in millionths of a dollar.
var dollars = text("dollars (25, 0.50)", func(s string) (int64, string, string) {
	const digits, most = 6, 1_000_000_000
	whole, part, _ := strings.Cut(strings.TrimSuffix(s, " USD"), ".")
	if len(part) > digits {
		return 0, "has more than six decimals", ""
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	switch {
	case err != nil || whole == "" || whole[0] < '0' || whole[0] > '9':
		return 0, "want dollars, such as 25 or 0.50", ""
	case n <= 0:
		return 0, "must be more than 0", ""
	case n > most*1_000_000:
		return 0, "must be at most a billion dollars", ""
	}
	return n, "", ""
})

// budget checks which fields a limit in dollars has, and completes it. good means that each field is valid by itself.
func (d *decoder) budget(n *node, l *pace, good bool) {
	const write = "write amount: 25 and every: day, or window: 24h"
	every, window := n.Get("every"), n.Get("window")
	if at := n.Get("rate"); at != nil {
		d.Bad(at, write+" instead", "a budget has no rate: a rate refills continuously, so more than its amount could be spent")
		good = false
	}
	for _, name := range []string{"burst", "shape", "adaptive", "advertised"} {
		if at := n.Get(name); at != nil && !isOff(at) {
			d.Bad(at, "leave it out", "a budget has no %s", name)
			good = false
		}
	}
	switch {
	case !good: // one error is enough
	case n.Get("amount") == nil:
		d.Bad(n, write, "has no amount")
	case every == nil && window == nil:
		d.Bad(n, write, "has an amount without a window")
	case every != nil && window != nil:
		d.Bad(window, "leave one of them out", "window cannot be combined with every")
	case window != nil && n.Get("zone") != nil:
		d.Bad(n.Get("zone"), "leave it out", "zone applies only to every")
	}
	l.Amount, l.Rate.Burst = max(l.Amount, 1), 0
	if l.window > 0 {
		l.Shape, l.Rate.Per, l.Every, l.Zone = limit.Rolling, l.window, bucket.NoPeriod, ""
		return
	}
	if l.Shape, l.Rate.Per = limit.Calendar, 0; !l.Every.Valid() {
		l.Every = bucket.Day
	}
}

// noBudget reports fields that only limits in dollars have.
func (d *decoder) noBudget(n *node) {
	for _, name := range []string{"hold", "window"} {
		if at := n.Get(name); at != nil {
			d.Bad(at, "leave it out, or add unit: usd", "only a budget has a %s", name)
		}
	}
}

// Budgets reports whether a limit of the file counts dollars.
func (f *File) Budgets() bool {
	if f.Callers != nil && hasBudget(f.Callers.Policy) {
		return true
	}
	for i := range f.Upstreams {
		if hasBudget(f.Upstreams[i].Policy) {
			return true
		}
	}
	return false
}

func hasBudget(p weir.Policy) bool {
	return slices.ContainsFunc(slices.Concat(p.Limits, p.Shadow), func(l limit.Limit) bool { return l.IsBudget() })
}
