package sqlite

import (
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// A part is a set of columns whose values are bound if a delivery has any of them. Most deliveries have few, and each
// bound value takes about 1% of the time of an accept.
type part struct {
	columns string
	without string // the values of a row without this part; empty if all rows include it
	has     func(*acceptance) bool
	add     func(to []any, a *acceptance) []any
}

// A table is a table with accepted deliveries, split into parts.
type table struct {
	name  string
	parts []part
}

var deliveries = table{"delivery", []part{
	{"id, upstream, status, due, fingerprint, accepted, changed, size", "", nil,
		func(to []any, a *acceptance) []any {
			return append(to, a.is.ID, a.is.Upstream, string(a.is.Status), a.due, a.print, a.now, a.now, stored.SizeOf(a.r, a.header))
		}},
	{"tenant, holder, correlation", "'', '', ''",
		func(a *acceptance) bool { return a.r.Tenant != "" || a.r.Owner != "" || a.r.Correlation != "" },
		func(to []any, a *acceptance) []any { return append(to, a.r.Tenant, a.r.Owner, a.r.Correlation) }},
	{"not_before, expires, token_ends", "0, NULL, NULL",
		func(a *acceptance) bool {
			return !a.r.NotBefore.IsZero() || !a.r.Expires.IsZero() || !a.r.TokenEnds.IsZero()
		},
		func(to []any, a *acceptance) []any {
			return append(to, stored.Milli(a.r.NotBefore), instant(a.r.Expires), instant(a.r.TokenEnds))
		}},
	{"order_key, place, stops", "NULL, 0, 0",
		func(a *acceptance) bool { return a.r.OrderKey != "" },
		func(to []any, a *acceptance) []any { return append(to, a.r.OrderKey, a.place, a.r.Stop) }},
	{"idem_key", "NULL",
		func(a *acceptance) bool { return a.r.Key != "" },
		func(to []any, a *acceptance) []any { return append(to, a.r.Key) }},
	{"attempts, starts, fence, worker, lease, began", "0, 0, 0, '', NULL, NULL",
		func(a *acceptance) bool { return a.is.Status == delivery.Processing },
		func(to []any, a *acceptance) []any {
			return append(to, a.is.Attempts, a.is.Starts, a.is.Fence, a.begins.Owner, stored.Milli(a.is.Lease), a.now)
		}},
	{"callback, tells, told", "'', '', NULL",
		func(a *acceptance) bool { return a.r.Callback != "" || a.r.Tells != "" },
		func(to []any, a *acceptance) []any { return append(to, a.r.Callback, a.r.Tells, told(a.r)) }},
}}

var requests = table{"request", []part{
	{"seq, method, path, body", "", nil,
		func(to []any, a *acceptance) []any {
			body := a.r.Body
			if body == nil {
				body = []byte{}
			}
			return append(to, a.is.Seq, a.r.Method, a.r.Path, body)
		}},
	{"query, header, large", "'', '', ''",
		func(a *acceptance) bool { return a.r.Query != "" || a.header != "" || a.r.Large.Name != "" },
		func(to []any, a *acceptance) []any { return append(to, a.r.Query, a.header, a.r.Large.String()) }},
}}

// A shape is the set of parts that the rows of a delivery have, as bits for both tables.
type shape struct{ delivery, request uint8 }

func shapeOf(a *acceptance) shape { return shape{deliveries.shape(a), requests.shape(a)} }

func (t *table) shape(a *acceptance) (bits uint8) {
	for i, p := range t.parts {
		if p.has == nil || p.has(a) {
			bits |= 1 << i
		}
	}
	return bits
}

// values appends the values of the parts in bits for all deliveries.
func (t *table) values(to []any, bits uint8, all []*acceptance) []any {
	for _, a := range all {
		for i, p := range t.parts {
			if bits&(1<<i) != 0 {
				to = p.add(to, a)
			}
		}
	}
	return to
}

// insert returns the statement for a number of rows with these parts. If it fails, OR FAIL keeps the rows written so
// far, and the caller rolls back the transaction or a savepoint. Otherwise SQLite would copy the pages that it touches,
// to undo the statement alone.
func (t *table) insert(bits uint8, rows int) string {
	var columns, values []string
	for i, p := range t.parts {
		columns = append(columns, p.columns)
		if bits&(1<<i) != 0 {
			values = append(values, strings.TrimPrefix(strings.Repeat(", ?", 1+strings.Count(p.columns, ",")), ", "))
		} else {
			values = append(values, p.without)
		}
	}
	row := "(" + strings.Join(values, ", ") + ")"
	return "INSERT OR FAIL INTO " + t.name + "(" + strings.Join(columns, ", ") + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}
