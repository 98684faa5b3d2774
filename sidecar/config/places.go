package config

// placesOf says where each field of an upstream stands, and each of its limits and operations.
func placesOf(n *node) map[string]string {
	all := make(map[string]string)
	for _, f := range n.Fields {
		all[f.Name] = f.Value.From()
		if f.Name == "limits" || f.Name == "operations" {
			for _, one := range f.Value.Fields {
				all[f.Name+"."+one.Name] = one.Value.From()
			}
		}
	}
	return all
}

// Where says where a field of an upstream stands; "" if the file does not say it, and neither does a preset.
func (f *File) Where(upstream, field string) string { return f.Places[upstream][field] }
