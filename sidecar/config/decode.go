package config

import (
	"github.com/seed1158cd35/weir/internal/doc"
)

// A decoder turns a tree into values, and collects the errors.
type decoder struct {
	doc.Reader
	env     knobs
	root    *node
	lookup  func(string) (string, bool) // looks up an environment variable
	bearers []bearer                    // the tokens of all listeners

	callerScopes []string         // scopes of callers from the callers section
	tiers        map[string]bool  // upstreams that are tiers of a cascade
	overlaid     map[string]*node // unless nil, gets each upstream merged with its preset
	labelled     []labelled       // limits whose keys are labels
	own          map[string]file  // the files of `presets`, by the name of the preset
}

type (
	node  = doc.Node
	entry = doc.Entry
)

// newDecoder returns a decoder for the named file.
func newDecoder(file string) *decoder {
	return &decoder{Reader: doc.Reader{File: file, What: "a configuration", Bounds: bounds}}
}

// bounds limit the size of a configuration.
var bounds = doc.Bounds{Bytes: maxFile, Nodes: 500_000, Depth: 20}

// A form describes how a kind of value is written, in words, and reads it. If read returns false, it has reported an
// error.
type form[V any] struct {
	words string
	read  func(d *decoder, n *node) (V, bool)
}

// A field is one field of a mapping that describes a T, for the decoder and for docs/reference/configuration.md.
type field[T any] struct {
	name    string
	words   string // how the value is written
	missing string // the default
	meaning string // "" for a field that only presets may set; see removals
	set     func(d *decoder, n *node, v *T)
}

// one returns a field whose value is stored at the pointer that at returns.
func one[T, V any](name string, f form[V], at func(*T) *V, missing, meaning string) field[T] {
	return field[T]{name, f.words, missing, meaning, func(d *decoder, n *node, v *T) {
		if x, ok := f.read(d, n); ok {
			*at(v) = x
		}
	}}
}

// said returns a form of an optional value. nil differs from every value.
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

// mostNamed is the largest number of entries of a mapping with arbitrary names, such as limits in an upstream, and
// mostUpstreams that of upstreams in a file.
const (
	mostNamed     = 1000
	mostUpstreams = 10_000
)

// named returns the entries of a mapping with arbitrary names.
func (d *decoder) named(n *node) []entry { return d.namedAtMost(n, mostNamed) }

func (d *decoder) namedAtMost(n *node, most int) []entry {
	if !d.IsMapping(n) {
		return nil
	}
	if len(n.Fields) > most {
		d.Bad(n, "", "has %d entries; at most %d are allowed", len(n.Fields), most)
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
