package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// maxPresets is the most files that are read from the directory of `presets`.
const maxPresets = 1000

// A file is the content of a file and its path.
type file struct {
	path string
	data []byte
}

// readPresets reads the files NAME.yaml of the directory that the file names under `presets`. Each has the fields of an upstream.
func (d *decoder) readPresets(at *node) {
	if at == nil || at.Kind == doc.Empty {
		return
	}
	dir, ok := d.Str(at, "a directory")
	if !ok {
		return
	}
	dir = d.beside(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		d.Bad(at, "name a directory with files NAME.yaml", "%v", err)
		return
	}
	d.own = make(map[string]file)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".yaml")
		if !ok || name == "" || e.IsDir() {
			continue
		}
		if len(d.own) == maxPresets {
			d.Bad(at, "", "%s contains more than %d presets", dir, maxPresets)
			return
		}
		path := filepath.Join(dir, e.Name())
		data, err := read(path)
		if err != nil {
			d.Bad(at, "", "%v", err)
			continue
		}
		d.own[name] = file{path, data}
	}
	if len(d.own) == 0 {
		d.Bad(at, "name a directory with files NAME.yaml", "%s contains no presets", dir)
	}
}

// presetNames returns the names of all presets that the file may name, sorted.
func (d *decoder) presetNames() []string {
	all := slices.AppendSeq(Presets(), maps.Keys(d.own))
	slices.Sort(all)
	return slices.Compact(all)
}

// ownPreset returns the tree of a file of `presets` for an upstream. It may name one of weir's presets and change it.
func (d *decoder) ownPreset(name string, from file, n *node, tier bool) *node {
	inner := newDecoder(from.path)
	base := inner.Read(from.data)
	if len(inner.Errs) == 0 {
		inner.IsMapping(base)
	}
	if len(inner.Errs) > 0 {
		d.Errs = append(d.Errs, inner.Errs...)
		return n
	}
	expand(base)
	mark(base, name, nil, n.Path)
	if at := base.Get("preset"); at != nil {
		below, ok := d.Str(at, "the name of a preset")
		drop(base, "preset")
		switch {
		case ok && !slices.Contains(Presets(), below):
			d.Unknown(at, "preset of weir", below, Presets())
		case ok:
			base = over(weirPreset(below, at, n, false), base)
		}
	}
	if tier {
		inner.makeBrief(base)
	}
	return base
}
