package config

import (
	"github.com/seed1158cd35/weir/internal/doc"
)

// A decoder turns a tree into values, and collects what is wrong with it.
type decoder struct {
	doc.Reader
	env     knobs
	root    *node
	lookup  func(string) (string, bool) // a variable of the environment
	bearers []bearer                    // the tokens of all listeners

	callerScopes []string         // that callers have by the file's own section
	tiers        map[string]bool  // the upstreams that are tiers of a cascade
	overlaid     map[string]*node // is given each upstream laid over its preset, unless it is nil
	labelled     []labelled       // limits whose keys are labels
}

type (
	node  = doc.Node
	entry = doc.Entry
)

// newDecoder reads a file of a name.
func newDecoder(file string) *decoder {
	return &decoder{Reader: doc.Reader{File: file, What: "a configuration", Bounds: bounds}}
}

// bounds are how much a configuration may have.
var bounds = doc.Bounds{Bytes: maxFile, Nodes: 100_000, Depth: 20}

// A kind of value: how it is written, in words, and how it is read. read has
// complained if it reports false.
type form[V any] struct {
	words string
	read  func(d *decoder, n *node) (V, bool)
}

// A field is one field of a mapping that describes a T: all there is to know of
// it, for the decoder and for docs/reference/configuration.md.
type field[T any] struct {
	name    string
	words   string // how its value is written
	missing string // what it is if it does not stand there
	meaning string // "" of a field that presets may set and files may not: see removals
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

// said is a value that may be left out, which is another thing than any that can be said.
func said[V any](f form[V]) form[*V] {
	return form[*V]{f.words, func(d *decoder, n *node) (*V, bool) {
		v, ok := f.read(d, n)
		return &v, ok
	}}
}

// object reads a mapping, field by field.
func object[T any](d *decoder, n *node, fields []field[T], v *T) bool {
	before := len(d.Errs)
	if !d.IsMapping(n) {
		return false
	}
	for _, e := range n.Fields {
		if f := lookup(fields, e.Name); f != nil {
			f.set(d, e.Value, v)
		} else {
			d.Unknown(e.Key, "field", e.Name, names(fields))
		}
	}
	return len(d.Errs) == before
}

func lookup[T any](fields []field[T], name string) *field[T] {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// names returns the names of the fields that a file may have.
func names[T any](fields []field[T]) []string {
	var all []string
	for _, f := range fields {
		if f.meaning != "" {
			all = append(all, f.name)
		}
	}
	return all
}

// mostNamed is how many upstreams a file can have, and an upstream limits: far
// more than anyone manages by hand, and few enough to compare each with each.
const mostNamed = 1000

// named is the entries of a mapping whose names are free.
func (d *decoder) named(n *node) []entry {
	if !d.IsMapping(n) {
		return nil
	}
	if len(n.Fields) > mostNamed {
		d.Bad(n, "", "has %d entries; at most %d are allowed", len(n.Fields), mostNamed)
		return nil
	}
	good := make([]entry, 0, len(n.Fields))
	for _, e := range n.Fields {
		if d.checkName(e.Key, e.Name) {
			good = append(good, e)
		}
	}
	return good
}
