package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A removal is a field that is no longer documented. Until 0.2.0 weir serve accepts it with a warning, and weir check
// refuses it.
type removal struct {
	path    string // of the field; * stands for any name, and [] for any item of a list
	to      string // the new name of the field, or ignored, or applies
	instead string // what to use instead
}

const (
	applies = ""  // the value still applies until 0.2.0; presets may set it
	ignored = "-" // the value has no effect
)

// removals are the fields that are removed or renamed.
var removals = []removal{
	{"store.coast", ignored, "use store.outage, and store.without for the time after it"},
	{"store.share", "without", ""},
	{"traces.central", ignored, "use traces.share: weir no longer reads sampling rules from X-Ray; weir export xray-sampling still writes them"},
	{"traces.jaeger", ignored, "look traces up in Jaeger's own page: weir trace reads only X-Ray"},
	{"upstreams.*.websocket.realtime", ignored, "use websocket: {route_by: type}: weir no longer counts tokens of the Realtime API"},
}

// Removed returns the fields of the file that are removed or renamed, each with what to use instead, in the order of the file.
func (f *File) Removed() doc.Errors { return f.removed }

// replaceRemoved renames and deletes the removed fields of a tree, and returns a complaint about each.
func replaceRemoved(root *node) doc.Errors {
	var all doc.Errors
	for _, r := range removals {
		r.replace(root, strings.Split(r.path, "."), &all)
	}
	return all.Sorted()
}

// replace handles the fields below n at a path.
func (r *removal) replace(n *node, path []string, all *doc.Errors) {
	name, list := strings.CutSuffix(path[0], "[]")
	kept := n.Fields[:0:0]
	for _, e := range n.Fields {
		switch {
		case name != "*" && name != e.Name:
		case list:
			for _, item := range e.Value.Items {
				r.replace(item, path[1:], all)
			}
		case len(path) > 1:
			r.replace(e.Value, path[1:], all)
		default:
			*all = append(*all, r.complaint(e))
			if r.to == ignored || r.to != applies && n.Get(r.to) != nil {
				continue
			}
			if r.to != applies {
				e.Value.Path = strings.TrimSuffix(e.Value.Path, e.Name) + r.to
				e.Name = r.to
			}
		}
		kept = append(kept, e)
	}
	n.Fields = kept
}

// complaint returns what to report about a removed field of a file.
func (r *removal) complaint(e entry) doc.Complaint {
	c := doc.Complaint{File: e.Key.File, Line: e.Key.Line, Column: e.Key.Column, Field: e.Value.Path, Hint: r.instead}
	switch r.to {
	case applies:
		c.Problem = "is removed in 0.2.0, and applies until then"
	case ignored:
		c.Problem = "is removed, and has no effect"
	default:
		c.Problem, c.Hint = "has a new name", "write "+r.to
	}
	return c
}
