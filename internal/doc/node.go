package doc

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Node is a piece of a file that knows where it stands. Aliases and
// merge keys are resolved, so that nothing later has to know of them.
type Node struct {
	Kind   Kind
	Text   string  // of a scalar
	Items  []*Node // of a list
	Fields []Entry // of a mapping, in order, without repetitions

	Path         string // "upstreams.s3.limits.put.rate"
	File         string
	Line, Column int
	Preset       string // what it was taken from if it is not the file's own; told in complaints
	tag          string // of a scalar
}

// A Kind is what stands at a place.
type Kind uint8

const (
	Empty Kind = iota // nothing stands there
	Scalar
	List
	Mapping
)

// An Entry is a field of a mapping.
type Entry struct {
	Name  string
	Key   *Node // where the name stands
	Value *Node
}

// Get is the value of a field, nil if there is none.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, e := range n.Fields {
		if e.Name == name {
			return e.Value
		}
	}
	return nil
}

// All is the fields of a node, none if there is no such node.
func (n *Node) All() []Entry {
	if n == nil {
		return nil
	}
	return n.Fields
}

// Child is the path of a field of n.
func (n *Node) Child(name string) string {
	if n.Path == "" {
		return quoted(name)
	}
	return n.Path + "." + quoted(name)
}

// Decode reads a scalar as YAML does: a number, a bool, a text.
func (n *Node) Decode(to any) error {
	y := yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.Text}
	return y.Decode(to)
}

// Show is a node as a complaint shows it.
func (n *Node) Show() string {
	switch n.Kind {
	case Scalar:
		return Quote(n.Text)
	case List:
		return "a list"
	case Mapping:
		return "fields"
	}
	return "nothing"
}

// quoted is a name as it stands in a path: plain, or quoted if it is odd.
func quoted(name string) string {
	odd := func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r == '*' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if name == "" || len(name) > longestShown || strings.ContainsFunc(name, odd) {
		return Quote(name)
	}
	return name
}
