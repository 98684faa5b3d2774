package envoy

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/bucket"
)

type table = map[string]func(*yaml.Node)

// domain reads a whole file.
func (r *reader) domain(n *yaml.Node) {
	var name string
	var descriptors *yaml.Node
	ok := r.fields(n, "a file of rules", table{
		"domain":      r.text("domain", &name),
		"descriptors": func(n *yaml.Node) { descriptors = n },
	})
	switch {
	case !ok:
		return
	case name == "":
		r.bad(n, "name it as the rate limit filter of Envoy does", "the file has no domain")
	case r.rules.domains[name] != nil:
		r.bad(n, "put all its descriptors into one file", "domain %q stands in another file already", name)
	}
	d := &rule{label: name}
	r.nested(descriptors, d)
	r.rules.domains[name] = d
}

func (r *reader) nested(n *yaml.Node, in *rule) {
	if n == nil {
		return
	}
	lines := make(map[pair]int)
	r.items(n, "descriptors", func(n *yaml.Node) {
		if d := r.descriptor(n, in); d != nil {
			r.place(n, d, in, lines)
		}
	})
	slices.SortStableFunc(in.wild, func(a, b *rule) int { return cmp.Compare(len(b.value), len(a.value)) })
}

// place puts a descriptor where requests will find it.
func (r *reader) place(n *yaml.Node, d, in *rule, lines map[pair]int) {
	at := pair{d.key, d.value}
	if line := lines[at]; line > 0 {
		r.bad(n, "", "descriptor %s stands already on line %d", d.label, line)
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

// descriptor reads one descriptor with all that is nested in it; nil means that it
// is none.
func (r *reader) descriptor(n *yaml.Node, in *rule) *rule {
	d, q := new(rule), new(quota)
	var limited, descriptors *yaml.Node
	ok := r.fields(n, "a descriptor", table{
		"key":             r.text("key", &d.key),
		"value":           r.text("value", &d.value),
		"rate_limit":      func(n *yaml.Node) { limited = n },
		"descriptors":     func(n *yaml.Node) { descriptors = n },
		"shadow_mode":     r.flag("shadow_mode", &q.shadow),
		"quota_mode":      r.flag("quota_mode", &q.soft),
		"after_use":       r.flag("after_use", &q.afterUse),
		"detailed_metric": r.flag("detailed_metric", &d.detailed),
		"value_to_metric": r.flag("value_to_metric", &d.valueToMetric),
		"share_threshold": r.flag("share_threshold", &d.share),
	})
	switch {
	case !ok:
		return nil
	case d.key == "":
		r.bad(n, "", "the descriptor has no key")
		return nil
	case d.share && !d.wildcard():
		r.bad(n, "give it a value that ends in *", "share_threshold is for descriptors with a wildcard")
	}
	d.id, d.label = in.below(d), in.label+"."+d.shown("", false)
	if limited != nil && !null(limited) && r.limit(limited, q) {
		r.rules.limits++
		d.limit = q
		q.ready(d.id)
	}
	r.nested(descriptors, d)
	return d
}

// below is the id of a rule that is nested in r.
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

// limit reads the limit of a descriptor into q, and reports whether it is one.
func (r *reader) limit(n *yaml.Node, q *quota) bool {
	var unit, zone string
	var amount, every *uint32
	before := len(r.mistakes)
	ok := r.fields(n, "rate_limit", table{
		"unit":              r.text("unit", &unit),
		"requests_per_unit": r.count("requests_per_unit", &amount),
		"unit_multiplier":   r.count("unit_multiplier", &every),
		"zone":              r.text("zone", &zone),
		"unlimited":         r.flag("unlimited", &q.unlimited),
		"name":              r.text("name", &q.name),
		"replaces": func(n *yaml.Node) {
			r.items(n, "replaces", func(n *yaml.Node) { r.replaces(n, q) })
		},
	})
	if !ok || len(r.mistakes) > before {
		return false
	}
	if q.name != "" && slices.Contains(q.replaces, q.name) {
		r.bad(n, "", "limit %q replaces itself", q.name)
	}
	q.span = span{unitNames[strings.ToLower(unit)], 1, utc}
	switch {
	case q.unlimited && unit != "":
		r.bad(n, "leave one of them out", "an unlimited descriptor has no unit")
	case q.unlimited:
	case q.span.unit == 0:
		r.bad(n, "it is second, minute, hour, day, week, month or year", "unit %q is none", unit)
	case amount == nil:
		r.bad(n, "0 refuses everything", "the limit has no requests_per_unit")
	default:
		q.amount = *amount
	}
	r.span(n, q, zone, every)
	return len(r.mistakes) == before
}

func (r *reader) replaces(n *yaml.Node, q *quota) {
	var name string
	if r.fields(n, "an entry of replaces", table{"name": r.text("name", &name)}) {
		if name == "" {
			r.bad(n, "write - name: ...", "the entry of replaces has no name")
		}
		q.replaces = append(q.replaces, name)
	}
}

func (r *reader) span(n *yaml.Node, q *quota, zone string, every *uint32) {
	if every != nil {
		q.span.every = int64(*every)
		if *every < 1 || *every > maxEvery {
			r.bad(n, "", "unit_multiplier must be from 1 to %d", maxEvery)
		}
	}
	if zone == "" {
		return
	}
	var err error
	if unitSeconds[q.span.unit] > 0 {
		r.bad(n, "use day, week, month or year", "a zone says nothing for the unit %s", unitName(q.span.unit))
	} else if q.span.zone, err = bucket.Zone(zone); err != nil {
		r.bad(n, "", "%v", err)
	}
}
