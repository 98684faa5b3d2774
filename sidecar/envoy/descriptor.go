package envoy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// domain reads a whole file.
func (r *reader) domain(n *doc.Node) {
	var name string
	var descriptors *doc.Node
	ok := r.fields(n, table{
		"domain":      r.text(&name),
		"descriptors": func(n *doc.Node) { descriptors = n },
	})
	switch named := n.Get("domain"); {
	case !ok:
		return
	case named != nil && named.Kind != doc.Empty && named.Kind != doc.Scalar: // an error that is already reported
	case name == "":
		r.Bad(n, "use the domain of Envoy's rate limit filter", "the file has no domain")
	case r.rules.domains[name] != nil:
		r.Bad(n, "put all its descriptors into one file", "domain %q is already defined in another file", name)
	}
	d := &rule{label: name}
	r.nested(descriptors, d)
	r.rules.domains[name] = d
}

func (r *reader) nested(n *doc.Node, in *rule) {
	if n == nil {
		return
	}
	lines := make(map[pair]int)
	r.items(n, func(n *doc.Node) {
		if d := r.descriptor(n, in); d != nil {
			r.place(n, d, in, lines)
		}
	})
	slices.SortStableFunc(in.wild, func(a, b *rule) int { return cmp.Compare(len(b.value), len(a.value)) })
}

// place stores a descriptor where requests find it.
func (r *reader) place(n *doc.Node, d, in *rule, lines map[pair]int) {
	at := pair{d.key, d.value}
	if line := lines[at]; line > 0 {
		r.Bad(n, "", "descriptor %s is already defined on line %d", d.label, line)
		return
	}
	lines[at] = n.Line
	if d.wildcard() {
		in.wild = append(in.wild, d)
		return
	}
	if in.exact == nil {
		in.exact = make(map[pair]*rule)
	}
	in.exact[at] = d
}

// descriptor reads one descriptor with its nested descriptors. It returns nil if it is invalid.
func (r *reader) descriptor(n *doc.Node, in *rule) *rule {
	d, q := new(rule), new(quota)
	var limited, descriptors *doc.Node
	ok := r.fields(n, table{
		"key":             r.text(&d.key),
		"value":           r.text(&d.value),
		"rate_limit":      func(n *doc.Node) { limited = n },
		"descriptors":     func(n *doc.Node) { descriptors = n },
		"shadow_mode":     r.flag(&q.shadow),
		"quota_mode":      r.flag(&q.soft),
		"after_use":       r.flag(&q.afterUse),
		"detailed_metric": r.flag(&d.detailed),
		"value_to_metric": r.flag(&d.valueToMetric),
		"share_threshold": r.flag(&d.share),
		"metadata":        func(*doc.Node) {}, // any form; not used
	})
	switch {
	case !ok:
		return nil
	case d.key == "":
		r.Bad(n, "", "the descriptor has no key")
		return nil
	case strings.Contains(d.key, "*"):
		r.Bad(n, "write the key in full, and put the * into its value", "key %q has a wildcard", d.key)
		return nil
	case d.share && !d.wildcard():
		r.Bad(n, "give it a value with a *", "share_threshold is for descriptors with a wildcard")
	}
	d.id, d.label = in.below(d), in.label+"."+d.shown("", false)
	d.valued = in.valued || d.valueToMetric
	if limited != nil && limited.Kind != doc.Empty && r.limit(limited, q) {
		r.rules.limits++
		d.limit = q
		q.ready(d.id)
	}
	r.nested(descriptors, d)
	return d
}

// below returns the id of a rule nested in r.
func (r *rule) below(n *rule) string {
	id := escape(n.key)
	if n.value != "" {
		id += "=" + escape(n.value)
	}
	if r.id == "" {
		return id
	}
	return r.id + "&" + id
}

// limit reads the limit of a descriptor into q. It returns false if the limit is invalid.
func (r *reader) limit(n *doc.Node, q *quota) bool {
	var unit, zone string
	var amount, every *uint32
	before := len(r.Errs)
	ok := r.fields(n, table{
		"unit":              r.text(&unit),
		"requests_per_unit": r.count(&amount),
		"unit_multiplier":   r.count(&every),
		"zone":              r.text(&zone),
		"unlimited":         r.flag(&q.unlimited),
		"name":              r.text(&q.name),
		"replaces": func(n *doc.Node) {
			r.items(n, func(n *doc.Node) { r.replaces(n, q) })
		},
	})
	if !ok || len(r.Errs) > before {
		return false
	}
	if q.name != "" && slices.Contains(q.replaces, q.name) {
		r.Bad(n, "", "limit %q replaces itself", q.name)
	}
	q.span = span{unitNames[strings.ToLower(unit)], 1, utc}
	switch {
	case q.unlimited && unit != "":
		r.Bad(n, "leave one of them out", "an unlimited descriptor has no unit")
	case q.unlimited:
	case q.span.unit == 0:
		r.Bad(n, "want second, minute, hour, day, week, month or year", "unknown unit %q", unit)
	case amount == nil:
		r.Bad(n, "0 refuses everything", "the limit has no requests_per_unit")
	default:
		q.amount = *amount
	}
	r.span(n, q, zone, every)
	return len(r.Errs) == before
}

func (r *reader) replaces(n *doc.Node, q *quota) {
	var name string
	if r.fields(n, table{"name": r.text(&name)}) {
		if name == "" {
			r.Bad(n, "write - name: ...", "the entry of replaces has no name")
		}
		q.replaces = append(q.replaces, name)
	}
}

func (r *reader) span(n *doc.Node, q *quota, zone string, every *uint32) {
	if every != nil {
		q.span.every = int64(*every)
		if *every < 1 || *every > maxEvery {
			r.Bad(n, "", "unit_multiplier must be from 1 to %d", maxEvery)
		}
	}
	if zone == "" {
		return
	}
	var err error
	if unitSeconds[q.span.unit] > 0 {
		r.Bad(n, "use day, week, month or year", "a zone has no effect for the unit %s", unitName(q.span.unit))
	} else if q.span.zone, err = bucket.Zone(zone); err != nil {
		r.Bad(n, "", "%v", err)
	}
}
