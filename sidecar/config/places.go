package config

import "fmt"

// placesOf says where each field of an upstream stands, and each of its limits and operations.
func placesOf(n *node) map[string]string {
	all := make(map[string]string)
	for _, f := range n.Fields {
		all[f.Name] = placeOf(f.Value)
		if f.Name == "limits" || f.Name == "operations" {
			for _, one := range f.Value.Fields {
				all[f.Name+"."+one.Name] = placeOf(one.Value)
			}
		}
	}
	return all
}

// placeOf is where a node stands: in a file, or in the preset that the file names.
func placeOf(n *node) string {
	at := fmt.Sprintf("%s:%d", n.File, n.Line)
	if n.Preset != "" {
		return fmt.Sprintf("preset %s (%s)", n.Preset, at)
	}
	return at
}

// Where says where a field of an upstream stands; "" if the file does not say it, and neither does a preset.
func (f *File) Where(upstream, field string) string { return f.Places[upstream][field] }
