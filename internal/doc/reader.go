package doc

import (
	"fmt"
	"strings"
)

// A Reader reads one file, and collects what is wrong with it.
type Reader struct {
	File   string
	What   string // what the file is: "a configuration"
	Bounds Bounds
	Errs   Errors
}

// Bounds are how much a file may have: far more than people write, and little enough to be held
// in memory. Each must be set but Complaints.
type Bounds struct {
	Bytes      int
	Nodes      int // aliases written out, which can make a small file stand for a huge one
	Depth      int
	Complaints int // 0 means no bound
}

// Bad complains of a node: what is wrong with it, and what to write instead, "" if nobody knows.
func (r *Reader) Bad(n *Node, hint, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if n.Preset != "" {
		problem += " (from preset " + n.Preset + ")"
	}
	r.Complain(Complaint{File: n.File, Line: n.Line, Column: n.Column, Field: n.Path, Problem: problem, Hint: hint})
}

// Missing complains of a field that a mapping should have.
func (r *Reader) Missing(n *Node, field, hint, format string, args ...any) {
	at := *n
	at.Path = n.Child(field)
	r.Bad(&at, hint, format, args...)
}

// Complain adds a complaint, unless there are so many already that nobody reads them.
func (r *Reader) Complain(c Complaint) {
	if most := r.Bounds.Complaints; most > 0 && len(r.Errs) >= most {
		if len(r.Errs) > most {
			return
		}
		c = Complaint{File: r.File, Line: 1 << 30, Problem: "and more mistakes"}
	}
	r.Errs = append(r.Errs, c)
}

// Unknown complains of a name that nothing has, and says which one it looks like, or all there
// are if they are few.
func (r *Reader) Unknown(n *Node, what, name string, known []string) {
	r.Bad(n, Suggest(name, known), "unknown %s %s", what, Quote(name))
}

// IsMapping takes nothing for a mapping without fields.
func (r *Reader) IsMapping(n *Node) bool {
	if n.Kind == Mapping || n.Kind == Empty {
		return true
	}
	r.Bad(n, "", "%s: want fields, indented below it", n.Show())
	return false
}

// Fields reads a mapping: known has what reads each field. It reports whether n is a mapping that
// has none but those.
func (r *Reader) Fields(n *Node, known map[string]func(*Node)) bool {
	before := len(r.Errs)
	if !r.IsMapping(n) {
		return false
	}
	for _, e := range n.Fields {
		if read := known[e.Name]; read != nil {
			read(e.Value)
		} else {
			r.Unknown(e.Key, "field", e.Name, sorted(known))
		}
	}
	return len(r.Errs) == before
}

// Str is the text of a node that is a plain value.
func (r *Reader) Str(n *Node, want string) (string, bool) {
	if n.Kind == Scalar {
		return n.Text, true
	}
	r.Bad(n, "", "%s: want %s", n.Show(), want)
	return "", false
}

// broken is the complaint about what is not YAML.
func (r *Reader) broken(err error, data []byte) Complaint {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " ")
	c := Complaint{File: r.File, Line: brokenLine(data), Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if c.Line == 0 {
			_, _ = fmt.Sscan(m[1], &c.Line)
		}
	}
	c.Problem, c.Hint = "broken YAML: "+text, whyBroken(string(data))
	return c
}

// whyBroken is a hint at what most people get wrong.
func whyBroken(data string) string {
	switch {
	case strings.Contains(data, "\n\t"):
		return "indent YAML with spaces, not tabs"
	case strings.Contains(data, "?]"), strings.Contains(data, "?,"):
		return "put a text that ends with ? into quotes"
	}
	return ""
}
