package doc

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Node is a part of a file with its position. Aliases and merge keys are resolved.
type Node struct {
	Kind   Kind
	Text   string  // of a scalar
	Items  []*Node // of a list
	Fields []Entry // of a mapping, in order, without duplicates

	Path         string // for example "upstreams.s3.limits.put.rate"
	File         string
	Line, Column int
	Preset       string // the preset that contains it, or "" for the file; complaints name it
	tag          string // of a scalar
}

// Clone returns a copy of a node and of all nodes below it.
func (n *Node) Clone() *Node {
	c := *n
	c.Items, c.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i := range c.Items {
		c.Items[i] = c.Items[i].Clone()
	}
	for i := range c.Fields {
		c.Fields[i].Value = c.Fields[i].Value.Clone()
		if key := c.Fields[i].Key; key != nil {
			c.Fields[i].Key = key.Clone()
		}
	}
	return &c
}

// A Kind is the kind of a node.
type Kind uint8

const (
	Empty Kind = iota // no value
	Scalar
	List
	Mapping
)

// An Entry is a field of a mapping.
type Entry struct {
	Name  string
	Key   *Node // position of the name
	Value *Node
}

// Get returns the value of a field, or nil.
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

// All returns the fields of a node. A nil node has no fields.
func (n *Node) All() []Entry {
	if n == nil {
		return nil
	}
	return n.Fields
}

// Child returns the path of a field of n.
func (n *Node) Child(name string) string {
	if n.Path == "" {
		return quoted(name)
	}
	return n.Path + "." + quoted(name)
}

// Decode decodes a scalar as YAML does: a number, a bool, or a text.
func (n *Node) Decode(to any) error {
	y := yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.Text}
	return y.Decode(to)
}

// Show returns a node's text for a complaint.
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

// quoted returns a name for a path, quoted if it has unusual characters.
func quoted(name string) string {
	odd := func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r == '*' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if name == "" || len(name) > longestShown || strings.ContainsFunc(name, odd) {
		return Quote(name)
	}
	return name
}
