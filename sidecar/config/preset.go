package config

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/seed1158cd35/weir/internal/doc"
)

// presets are documents with the form of an upstream.
//
//go:embed presets/*.yaml
var presets embed.FS

// Presets lists the names of the presets, sorted.
func Presets() []string {
	files, _ := presets.ReadDir("presets") // embedded, so it exists
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(all) // the file names are sorted with their extension
	return all
}

// presetText returns the text of a preset with its comments. It returns false if the preset does not exist.
func presetText(name string) (string, bool) {
	data, err := presets.ReadFile("presets/" + name + ".yaml")
	return string(data), err == nil
}

// PresetText returns the YAML of a preset with its comments. The first comment describes the preset in one line. It
// returns false if the preset does not exist.
func PresetText(name string) (string, bool) {
	if !slices.Contains(Presets(), name) {
		return "", false
	}
	return presetText(name)
}

// PresetHasModels reports whether a preset is for language models.
func PresetHasModels(name string) bool {
	text, ok := PresetText(name)
	return ok && newDecoder(name).Read([]byte(text)).Get("llm") != nil
}

// PresetHosts returns the host patterns of a preset, with * for any characters. It returns nil if the preset has
// none.
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

// overlay returns an upstream laid over its preset, with short forms expanded. A tier of a cascade gets the retries
// of brief.
func (d *decoder) overlay(n *node, tier bool) *node {
	expand(n)
	at := n.Get("preset")
	if at == nil {
		return n
	}
	name, ok := d.Str(at, "the name of a preset")
	if all := d.presetNames(); ok && !slices.Contains(all, name) {
		d.Bad(at, cmp.Or(doc.Suggest(name, all), `"weir presets" lists weir's`), "unknown preset %s", doc.Quote(name))
		ok = false
	}
	if !ok {
		return n
	}
	return over(d.preset(name, at, n, tier), n)
}

// over merges the fields of an upstream, or of a preset, over those of the preset that it names.
func over(base, n *node) *node {
	onePurse(base, n)
	oneShape(base, n)
	return merge(base, n)
}

// onePurse drops the preset's quota if the file has a budget, or the preset's budget if the file has a quota, because
// only one of them may be set. The budget of all processes together (all) is compatible with both.
func onePurse(base, n *node) {
	if b := n.Get("budget"); b != nil && !alone(b, "all") {
		drop(base, "quota")
	} else if q := n.Get("quota"); q != nil && !isOff(q) {
		keep(base, "budget", "all")
	}
}

// alone reports whether a mapping has only the named field.
func alone(n *node, name string) bool { return len(n.Fields) == 1 && n.Fields[0].Name == name }

// keep reduces a field's mapping to one of its fields. It drops the field if that one is missing.
func keep(n *node, field, name string) {
	for i := range n.Fields {
		if f := &n.Fields[i]; f.Name == field && f.Value.Get(name) != nil {
			f.Value = only(f.Value, name)
			return
		}
	}
	drop(n, field)
}

// preset returns the tree of a preset. Mistakes in a built-in preset are reported where the file names it, and mistakes in a file of
// `presets` at their position there.
func (d *decoder) preset(name string, at, n *node, tier bool) *node {
	if own, ok := d.own[name]; ok {
		return d.ownPreset(name, own, n, tier)
	}
	return weirPreset(name, at, n, tier)
}

// presetTrees maps the name of each preset of weir that was used to its tree, which is never changed. A file can name a
// preset thousands of times.
var presetTrees sync.Map

// weirPreset returns the tree of one of weir's presets, with the position at which the file names it.
func weirPreset(name string, at, n *node, tier bool) *node {
	read, ok := presetTrees.Load(name)
	if !ok {
		text, _ := presetText(name)
		read, _ = presetTrees.LoadOrStore(name, newDecoder(name).Read([]byte(text)))
	}
	base := read.(*node).Clone()
	if tier {
		newDecoder(name).makeBrief(base)
	}
	expand(base)
	mark(base, name, at, n.Path)
	return base
}

// mark records that a node and all below it belong to a preset of the upstream at path. If at is not nil, they get its position.
func mark(n *node, preset string, at *node, path string) {
	n.Preset = preset
	if at != nil {
		n.File, n.Line, n.Column = at.File, at.Line, at.Column
	}
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
