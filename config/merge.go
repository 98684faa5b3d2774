package config

import (
	"slices"
	"strings"
)

// expand writes out the short forms of an upstream, so that what is written
// short in one place and in full in another can be merged.
func expand(n *node) {
	for i := range n.fields {
		f := &n.fields[i]
		switch f.name {
		case "retry", "quota", "breaker":
			f.value = inFull(f.value, "schedule")
		case "fair":
			f.value = inFull(f.value, "by")
		case "concurrency":
			f.value = inFull(f.value, "limit")
		case "operations":
			for j := range f.value.fields {
				expandOperation(f.value.fields[j].value)
			}
		case "limits":
			for j := range f.value.fields {
				l := &f.value.fields[j]
				l.value = inFull(l.value, "rate")
				expandAdaptive(l.value)
			}
		}
	}
}

func expandOperation(n *node) {
	for i := range n.fields {
		switch f := &n.fields[i]; f.name {
		case "retry":
			f.value = inFull(f.value, "schedule")
		case "concurrency":
			f.value = inFull(f.value, "limit")
		}
	}
}

// expandAdaptive makes a mapping of "adaptive: true".
func expandAdaptive(n *node) {
	for i := range n.fields {
		if f := &n.fields[i]; f.name == "adaptive" && f.value.isOn() {
			f.value.kind = mapping
		}
	}
}

// inFull is a mapping with one field for a plain value.
func inFull(n *node, name string) *node {
	if n.kind != scalar || n.isOff() {
		return n
	}
	full := *n
	full.kind, full.fields = mapping, []entry{{name, n, n}}
	return &full
}

// merge lays one node over another, field by field. What is a list or a plain
// value is replaced, and so is a schedule with all that was changed of it.
func merge(base, own *node) *node {
	switch {
	case own == nil || own.kind == empty && base != nil:
		return base
	case base == nil, base.kind != mapping, own.kind != mapping:
		return own
	case own.get("schedule") != nil && (strings.HasSuffix(own.path, ".retry") || strings.HasSuffix(own.path, ".quota")):
		return own
	case own.get("schedule") != nil && strings.HasSuffix(own.path, ".breaker"):
		return base.only("scope").under(own)
	}
	return base.under(own)
}

// only is the mapping with no more than the fields of the names.
func (n *node) only(names ...string) *node {
	some := *n
	some.fields = slices.DeleteFunc(slices.Clone(n.fields), func(e entry) bool { return !slices.Contains(names, e.name) })
	return &some
}

// under is the mapping with another laid over it.
func (base *node) under(own *node) *node {
	both := *own
	both.fields = nil
	for _, e := range base.fields {
		if v := own.get(e.name); v != nil {
			e.value = merge(e.value, v)
		}
		both.fields = append(both.fields, e)
	}
	added := slices.DeleteFunc(slices.Clone(own.fields), func(e entry) bool { return base.get(e.name) != nil })
	if strings.HasSuffix(own.path, ".operations") {
		// The first that matches is taken, and what somebody added to a preset
		// is the more special.
		both.fields = append(added, both.fields...)
	} else {
		both.fields = append(both.fields, added...)
	}
	return &both
}
