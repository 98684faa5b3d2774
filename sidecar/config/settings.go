package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe"
)

// wasRead is the source of a file, from which Settings can be computed without a copy of them in memory.
type wasRead struct {
	name string
	data []byte
	env  func(string) (string, bool)
}

// longestSetting is the longest value that is shown, in bytes.
const longestSetting = 300

// Settings returns the file's settings in its order, each upstream laid over its preset, with the origin of each
// value. Values that may be secrets, which do not belong in a file, are masked. A value counts as a secret by its
// form, or if it should be the name of an environment variable and is not the name of an existing one.
func (f *File) Settings() []doc.Setting {
	if f.text == nil {
		return nil
	}
	d := newDecoder(f.text.name)
	d.overlaid = make(map[string]*node)
	root, _ := d.parse(f.text.data, f.text.env)
	var all []doc.Setting
	for _, v := range variables {
		if s, ok := f.text.set(v.Name); ok && strings.HasPrefix(v.Name, "THROTTLE_") { // the other variables replace fields
			all = append(all, doc.Setting{Field: v.Name, Value: s, From: "environment"})
		}
	}
	for _, e := range root.All() {
		if e.Name != "upstreams" {
			all = append(all, e.Value.Settings()...)
			continue
		}
		for _, u := range e.Value.All() {
			all = append(all, d.overlaid[u.Name].Settings()...)
		}
	}
	for i := range all {
		if secretPlace.MatchString(all[i].Field) && !f.text.named(all[i].Value) {
			all[i].Value = observe.Mask
			continue
		}
		if all[i].Value = observe.Redact(all[i].Value, longestSetting); veil.Reveals(all[i].Value) != "" {
			all[i].Value = observe.Mask
		}
	}
	return all
}

// named reports whether a value is the name of an existing environment variable, or a list of such names.
func (s *wasRead) named(value string) bool {
	if s.env == nil {
		return false
	}
	if in, is := strings.CutPrefix(value, "["); is {
		value = strings.TrimSuffix(in, "]")
	}
	for _, name := range strings.Split(value, ", ") {
		if _, there := s.env(name); !there {
			return false
		}
	}
	return true
}

// set returns an environment variable, and false if it is missing or empty.
func (s *wasRead) set(name string) (string, bool) {
	if s.env == nil {
		return "", false
	}
	v, _ := s.env(name)
	return v, v != ""
}
