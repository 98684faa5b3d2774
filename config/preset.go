package config

import (
	"embed"
	"slices"
	"strings"
)

// presets are documents of the same form as an upstream.
//
//go:embed presets/*.yaml
var presets embed.FS

// Presets lists the names of the presets, sorted.
func Presets() []string {
	files, _ := presets.ReadDir("presets") // embedded, so it is there
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(all) // the files are sorted with their ends
	return all
}

// Preset is the text of a preset, comments and all, and false if there is none
// by that name.
func Preset(name string) (string, bool) {
	data, err := presets.ReadFile("presets/" + name + ".yaml")
	return string(data), err == nil
}

// overlay is an upstream laid over its preset, short forms written out. One that is a tier
// of a cascade is brief.
func (d *decoder) overlay(n *node, tier bool) *node {
	expand(n)
	at := n.get("preset")
	if at == nil {
		return n
	}
	name, ok := d.scalar(at, "the name of a preset")
	if ok && !slices.Contains(Presets(), name) {
		d.unknown(at, "preset", name, Presets())
		ok = false
	}
	if !ok {
		return n
	}
	base := d.preset(name, at, n, tier)
	if n.get("budget") != nil { // one stands in place of the other
		base.drop("quota")
	} else if q := n.get("quota"); q != nil && !q.isOff() {
		base.drop("budget")
	}
	oneShape(base, n)
	return merge(base, n)
}

// preset is the tree of a preset, told apart from the file's own: whatever is
// wrong with it is wrong where the file names it.
func (d *decoder) preset(name string, at, n *node, tier bool) *node {
	text, _ := Preset(name)
	inner := decoder{file: name}
	base := inner.tree([]byte(text))
	if tier {
		inner.makeBrief(base)
	}
	expand(base)
	base.mark(name, at, n.path)
	return base
}

func (n *node) mark(preset string, at *node, path string) {
	n.preset, n.file, n.line, n.column = preset, at.file, at.line, at.column
	if n.path == "" {
		n.path = path
	} else {
		n.path = path + "." + n.path
	}
	for _, item := range n.items {
		item.mark(preset, at, path)
	}
	for _, e := range n.fields {
		e.value.mark(preset, at, path)
	}
}

// drop removes fields.
func (n *node) drop(names ...string) {
	n.fields = slices.DeleteFunc(n.fields, func(e entry) bool { return slices.Contains(names, e.name) })
}
