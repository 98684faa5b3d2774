package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/complain"
)

// A decoder turns a tree into values, and collects what is wrong with it.
type decoder struct {
	file string
	errs Errors
	env  knobs

	callerScopes []string        // that callers have by the file's own section
	tiers        map[string]bool // the upstreams that are tiers of a cascade
}

func (d *decoder) complain(c Complaint) { d.errs = append(d.errs, c) }

// bad complains of a node.
func (d *decoder) bad(n *node, hint, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if n.preset != "" {
		problem += " (from preset " + n.preset + ")"
	}
	d.complain(Complaint{File: n.file, Line: n.line, Column: n.column, Field: n.path, Problem: problem, Hint: hint})
}

// A kind of value: how it is written, in words, and how it is read. read has
// complained if it reports false.
type form[V any] struct {
	words string
	read  func(d *decoder, n *node) (V, bool)
}

// A field is one field of a mapping that describes a T: all there is to know of
// it, for the decoder and for docs/configuration.md.
type field[T any] struct {
	name    string
	words   string // how its value is written
	missing string // what it is if it does not stand there
	meaning string
	set     func(d *decoder, n *node, v *T)
}

// one is a field whose value is kept where at says.
func one[T, V any](name string, f form[V], at func(*T) *V, missing, meaning string) field[T] {
	return field[T]{name, f.words, missing, meaning, func(d *decoder, n *node, v *T) {
		if x, ok := f.read(d, n); ok {
			*at(v) = x
		}
	}}
}

// object reads a mapping, field by field.
func object[T any](d *decoder, n *node, fields []field[T], v *T) bool {
	before := len(d.errs)
	if !d.isMapping(n) {
		return false
	}
	for _, e := range n.fields {
		if f := lookup(fields, e.name); f != nil {
			f.set(d, e.value, v)
		} else {
			d.unknown(e.key, "field", e.name, names(fields))
		}
	}
	return len(d.errs) == before
}

// retired takes fields away that are no longer there, and complains of each, with what to
// write in its place.
func (d *decoder) retired(n *node, instead map[string]string) {
	n.fields = slices.DeleteFunc(n.fields, func(e entry) bool {
		hint, was := instead[e.name]
		if was {
			d.bad(e.key, hint, "is no longer there")
		}
		return was
	})
}

func lookup[T any](fields []field[T], name string) *field[T] {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func names[T any](fields []field[T]) []string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

// isMapping takes nothing for a mapping without fields.
func (d *decoder) isMapping(n *node) bool {
	if n.kind == mapping || n.kind == empty {
		return true
	}
	d.bad(n, "", "%s: want fields of its own, indented below it", n.show())
	return false
}

// mostNamed is how many upstreams a file can have, and an upstream limits: far
// more than anyone manages by hand, and few enough to compare each with each.
const mostNamed = 1000

// named is the entries of a mapping whose names are free.
func (d *decoder) named(n *node) []entry {
	if !d.isMapping(n) {
		return nil
	}
	if len(n.fields) > mostNamed {
		d.bad(n, "", "has %d entries, and may have %d", len(n.fields), mostNamed)
		return nil
	}
	good := make([]entry, 0, len(n.fields))
	for _, e := range n.fields {
		if d.checkName(e.key, e.name) {
			good = append(good, e)
		}
	}
	return good
}

// scalar is the text of a node that is a plain value.
func (d *decoder) scalar(n *node, want string) (string, bool) {
	if n.kind == scalar {
		return n.text, true
	}
	d.bad(n, "", "%s: want %s", n.show(), want)
	return "", false
}

// unknown complains of a name that nothing has, and says which one it looks
// like, or all there are if they are few.
func (d *decoder) unknown(n *node, what, name string, known []string) {
	d.bad(n, complain.Suggest(name, known), "there is no %s %s", what, complain.Quote(name))
}

// show is a node as a complaint shows it.
func (n *node) show() string {
	switch n.kind {
	case scalar:
		return complain.Quote(n.text)
	case list:
		return "a list"
	case mapping:
		return "fields"
	}
	return "nothing"
}

const longestShown = 60

// show is a name as it stands in a path: plain, or quoted if it is odd.
func show(name string) string {
	odd := func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if name == "" || len(name) > longestShown || strings.ContainsFunc(name, odd) {
		return complain.Quote(name)
	}
	return name
}
