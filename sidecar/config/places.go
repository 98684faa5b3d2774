package config

// placesOf returns the position of each field of an upstream, and of each of its limits and operations.
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

// Where returns the position of an upstream's field. It returns "" if neither the file nor a preset sets it.
func (f *File) Where(upstream, field string) string { return f.Places[upstream][field] }
