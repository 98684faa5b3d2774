package doc

import (
	"fmt"
	"strings"
)

// A Reader parses one file and collects its mistakes.
type Reader struct {
	File   string
	What   string // the kind of file, such as "a configuration"
	Bounds Bounds
	Errs   Errors
}

// Bounds limit the size of a file. They are far above what people write and small enough for memory. All except Complaints are
// required.
type Bounds struct {
	Bytes      int
	Nodes      int // with resolved aliases, which can make a small file very large
	Depth      int
	Complaints int // 0 means no bound
}

// Bad adds a complaint about a node. hint is a correction, or "".
func (r *Reader) Bad(n *Node, hint, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if n.Preset != "" {
		problem += " (from preset " + n.Preset + ")"
	}
	r.Complain(Complaint{File: n.File, Line: n.Line, Column: n.Column, Field: n.Path, Problem: problem, Hint: hint})
}

// Missing adds a complaint about a missing field of a mapping.
func (r *Reader) Missing(n *Node, field, hint, format string, args ...any) {
	at := *n
	at.Path = n.Child(field)
	r.Bad(&at, hint, format, args...)
}

// Complain adds a complaint, up to the bound.
func (r *Reader) Complain(c Complaint) {
	if most := r.Bounds.Complaints; most > 0 && len(r.Errs) >= most {
		if len(r.Errs) > most {
			return
		}
		c = Complaint{File: r.File, Line: 1 << 30, Problem: "and more mistakes"}
	}
	r.Errs = append(r.Errs, c)
}

// Unknown adds a complaint about an unknown name. It suggests a similar known name, or all if they are few.
func (r *Reader) Unknown(n *Node, what, name string, known []string) {
	r.Bad(n, Suggest(name, known), "unknown %s %s", what, Quote(name))
}

// IsMapping reports whether n is a mapping. It accepts an empty node as a mapping without fields.
func (r *Reader) IsMapping(n *Node) bool {
	if n.Kind == Mapping || n.Kind == Empty {
		return true
	}
	r.Bad(n, "", "%s: want fields, indented below it", n.Show())
	return false
}

// Fields parses a mapping with a function for each known field. It reports whether n is a mapping without other fields.
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

// Str returns the text of a scalar node.
func (r *Reader) Str(n *Node, want string) (string, bool) {
	if n.Kind == Scalar {
		return n.Text, true
	}
	r.Bad(n, "", "%s: want %s", n.Show(), want)
	return "", false
}

// broken returns the complaint about invalid YAML.
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

// whyBroken returns a hint for common mistakes.
func whyBroken(data string) string {
	switch {
	case strings.Contains(data, "\n\t"):
		return "indent YAML with spaces, not tabs"
	case strings.Contains(data, "?]"), strings.Contains(data, "?,"):
		return "put a text that ends with ? into quotes"
	case strings.Contains(data, ": > "):
		return "put a text that begins with > into quotes"
	}
	return ""
}
