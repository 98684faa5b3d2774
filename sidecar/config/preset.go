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

// presetText is the text of a preset, comments and all, and false if there is none
// by that name.
func presetText(name string) (string, bool) {
	data, err := presets.ReadFile("presets/" + name + ".yaml")
	return string(data), err == nil
}

// PresetText returns the YAML of a preset with its comments, the first of which describes it in one line. It returns false if there is no
// preset of that name.
func PresetText(name string) (string, bool) {
	if !slices.Contains(Presets(), name) {
		return "", false
	}
	return presetText(name)
}

// PresetHosts returns the hosts that a preset is for, with * for any characters. It returns nil if the preset is for no certain hosts.
func PresetHosts(name string) (all []string) {
	text, ok := PresetText(name)
	if !ok {
		return nil
	}
	hosts := newDecoder(name).Read([]byte(text)).Get("hosts")
	if hosts == nil {
		return nil
	}
	for _, item := range hosts.Items {
		all = append(all, item.Text)
	}
	return all
}

// overlay is an upstream laid over its preset, short forms written out. One that is a tier
// of a cascade is brief.
func (d *decoder) overlay(n *node, tier bool) *node {
	expand(n)
	at := n.Get("preset")
	if at == nil {
		return n
	}
	name, ok := d.Str(at, "the name of a preset")
	if ok && !slices.Contains(Presets(), name) {
		d.Unknown(at, "preset", name, Presets())
		ok = false
	}
	if !ok {
		return n
	}
	base := d.preset(name, at, n, tier)
	onePurse(base, n)
	oneShape(base, n)
	return merge(base, n)
}

// onePurse takes the quota from a preset where the file has a budget, or the budget where it has a quota: one stands in
// place of the other. What all processes may do together (all) stands beside either.
func onePurse(base, n *node) {
	if b := n.Get("budget"); b != nil && !alone(b, "all") {
		drop(base, "quota")
	} else if q := n.Get("quota"); q != nil && !isOff(q) {
		keep(base, "budget", "all")
	}
}

// alone reports whether a mapping has the field and no other.
func alone(n *node, name string) bool { return len(n.Fields) == 1 && n.Fields[0].Name == name }

// keep leaves one field of a field's, and nothing where that is not there.
func keep(n *node, field, name string) {
	for i := range n.Fields {
		if f := &n.Fields[i]; f.Name == field && f.Value.Get(name) != nil {
			f.Value = only(f.Value, name)
			return
		}
	}
	drop(n, field)
}

// preset is the tree of a preset, told apart from the file's own: whatever is
// wrong with it is wrong where the file names it.
func (d *decoder) preset(name string, at, n *node, tier bool) *node {
	text, _ := presetText(name)
	inner := newDecoder(name)
	base := inner.Read([]byte(text))
	if tier {
		inner.makeBrief(base)
	}
	expand(base)
	mark(base, name, at, n.Path)
	return base
}

func mark(n *node, preset string, at *node, path string) {
	n.Preset, n.File, n.Line, n.Column = preset, at.File, at.Line, at.Column
	if n.Path == "" {
		n.Path = path
	} else {
		n.Path = path + "." + n.Path
	}
	for _, item := range n.Items {
		mark(item, preset, at, path)
	}
	for _, e := range n.Fields {
		mark(e.Value, preset, at, path)
	}
}

// drop removes fields.
func drop(n *node, names ...string) {
	n.Fields = slices.DeleteFunc(n.Fields, func(e entry) bool { return slices.Contains(names, e.Name) })
}
