package envoy

import "github.com/seed1158cd35/weir/internal/doc"

// A reader reads one file of rules, and collects errors.
type reader struct {
	doc.Reader
	rules *Rules
}

type table = map[string]func(*doc.Node)

var bounds = doc.Bounds{Bytes: maxFile, Nodes: 1_000_000, Depth: 64}

func newReader(file string, rules *Rules) *reader {
	return &reader{doc.Reader{File: file, What: "a file of rules", Bounds: bounds}, rules}
}

func (r *reader) read(data []byte) {
	switch n := r.Read(data); {
	case n == nil:
	case n.Kind == doc.Empty:
		r.Bad(n, "it needs a domain and descriptors", "is empty")
	default:
		r.domain(n)
	}
}

// fields reads a mapping. It calls the table's function for each name with the value. It reports whether n is a
// mapping.
func (r *reader) fields(n *doc.Node, t table) bool {
	r.Fields(n, t)
	return n.Kind == doc.Mapping || n.Kind == doc.Empty
}

// items reads a list.
func (r *reader) items(n *doc.Node, f func(*doc.Node)) {
	if n.Kind != doc.List && n.Kind != doc.Empty {
		r.Bad(n, "begin each with a dash", "%s: want a list", n.Show())
	}
	for _, one := range n.Items {
		f(one)
	}
}

// text, flag and count store scalars in variables. An empty node leaves the variable unchanged.

// text stores a text exactly as in the file, even if it looks like a number.
func (r *reader) text(to *string) func(*doc.Node) {
	return func(n *doc.Node) {
		if n.Kind != doc.Empty {
			*to, _ = r.Str(n, "a text")
		}
	}
}

func (r *reader) flag(to *bool) func(*doc.Node) { return r.scalar("true or false", to) }

func (r *reader) count(to **uint32) func(*doc.Node) {
	return r.scalar("a whole number from 0 to 4294967295", to)
}

func (r *reader) scalar(words string, to any) func(*doc.Node) {
	return func(n *doc.Node) {
		if n.Kind != doc.Empty && (n.Kind != doc.Scalar || n.Decode(to) != nil) {
			r.Bad(n, "", "%s: want %s", n.Show(), words)
		}
	}
}
