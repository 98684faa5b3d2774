package doc

import (
	"fmt"
	"strings"
)

// A Setting is a value in a file with its position, as text.
type Setting struct {
	Field string // "upstreams.s3.limits.put.rate"
	Value string
	From  string // "weir.yaml:12", "preset s3 (weir.yaml:7)", or "environment"
}

// Settings returns the values of a node and its descendants, in the order of the file.
func (n *Node) Settings() []Setting {
	if n == nil {
		return nil
	}
	var all []Setting
	switch n.Kind {
	case Mapping:
		for _, e := range n.Fields {
			all = append(all, e.Value.Settings()...)
		}
	case List:
		if words, plain := n.words(); plain {
			return []Setting{{n.Path, "[" + strings.Join(words, ", ") + "]", n.From()}}
		}
		for _, item := range n.Items {
			all = append(all, item.Settings()...)
		}
	case Scalar:
		return []Setting{{n.Path, n.Text, n.From()}}
	}
	return all
}

// words returns the texts of a list of scalars.
func (n *Node) words() (all []string, plain bool) {
	for _, item := range n.Items {
		if item.Kind != Scalar {
			return nil, false
		}
		all = append(all, item.Text)
	}
	return all, true
}

// From returns the position of a node: in a file, or in a preset that the file names.
func (n *Node) From() string {
	at := n.File
	if n.Line > 0 {
		at = fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	if n.Preset != "" {
		return fmt.Sprintf("preset %s (%s)", n.Preset, at)
	}
	return at
}
