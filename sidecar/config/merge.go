package config

import (
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// expand replaces the short forms of an upstream by the full forms, so that both can be merged.
func expand(n *node) {
	for i := range n.Fields {
		f := &n.Fields[i]
		switch f.Name {
		case "retry", "quota", "breaker", "ask_again":
			f.Value = inFull(f.Value, "schedule")
		case "fair":
			f.Value = inFull(f.Value, "by")
		case "concurrency":
			f.Value = inFull(f.Value, "limit")
		case "operations":
			for j := range f.Value.Fields {
				expandOperation(f.Value.Fields[j].Value)
			}
		case "limits":
			for j := range f.Value.Fields {
				l := &f.Value.Fields[j]
				l.Value = inFull(l.Value, "rate")
				expandAdaptive(l.Value)
			}
		}
	}
}

func expandOperation(n *node) {
	for i := range n.Fields {
		switch f := &n.Fields[i]; f.Name {
		case "retry":
			f.Value = inFull(f.Value, "schedule")
		case "concurrency":
			f.Value = inFull(f.Value, "limit")
		}
	}
}

// expandAdaptive turns "adaptive: true" into a mapping.
func expandAdaptive(n *node) {
	for i := range n.Fields {
		if f := &n.Fields[i]; f.Name == "adaptive" && isOn(f.Value) {
			f.Value.Kind = doc.Mapping
		}
	}
}

// inFull turns a scalar into a mapping with one field.
func inFull(n *node, name string) *node {
	if n.Kind != doc.Scalar || isOff(n) {
		return n
	}
	full := *n
	full.Kind, full.Fields = doc.Mapping, []entry{{Name: name, Key: n, Value: n}}
	return &full
}

// merge lays one node over another, field by field. Lists and scalars are replaced, except headers that are kept in
// addition to the base's headers. A schedule is replaced together with all changes to it.
func merge(base, own *node) *node {
	switch {
	case own == nil || own.Kind == doc.Empty && base != nil:
		return base
	case base != nil && base.Kind == own.Kind && strings.HasSuffix(own.Path, ".deliver_headers"):
		both := *own
		both.Items = slices.Concat(base.Items, own.Items)
		return &both
	case base == nil, base.Kind != doc.Mapping, own.Kind != doc.Mapping:
		return own
	case own.Get("schedule") != nil && (strings.HasSuffix(own.Path, ".retry") || strings.HasSuffix(own.Path, ".ask_again") || strings.HasSuffix(own.Path, ".quota")):
		return own
	case own.Get("schedule") != nil && strings.HasSuffix(own.Path, ".breaker"):
		return under(only(base, "scope"), own)
	}
	return under(base, own)
}

// only returns the mapping with only the named fields.
func only(n *node, names ...string) *node {
	some := *n
	some.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(e entry) bool { return !slices.Contains(names, e.Name) })
	return &some
}

// except returns the mapping without a field.
func except(n *node, name string) *node {
	some := *n
	some.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(e entry) bool { return e.Name == name })
	return &some
}

// under returns base with own laid over it.
func under(base *node, own *node) *node {
	both := *own
	both.Fields = nil
	for _, e := range base.Fields {
		if v := own.Get(e.Name); v != nil {
			e.Value = merge(e.Value, v)
		}
		both.Fields = append(both.Fields, e)
	}
	added := slices.DeleteFunc(slices.Clone(own.Fields), func(e entry) bool { return base.Get(e.Name) != nil })
	if strings.HasSuffix(own.Path, ".operations") {
		// The first match wins, and an entry that the file adds to a preset is more specific.
		both.Fields = append(added, both.Fields...)
	} else {
		both.Fields = append(both.Fields, added...)
	}
	return &both
}
