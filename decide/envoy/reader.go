package envoy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A reader reads one file of rules, and collects what is wrong with it.
type reader struct {
	file     string
	rules    *Rules
	mistakes Mistakes

	nodes int                 // seen so far
	open  map[*yaml.Node]bool // on the way to the present one
}

// Aliases can make a small file stand for a huge one, so what it stands for is
// bounded, too.
const (
	maxNodes = 1_000_000
	maxDepth = 64
)

func (r *reader) bad(n *yaml.Node, hint, format string, args ...any) {
	m := Mistake{File: r.file, Problem: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		m.Line, m.Column = n.Line, n.Column
	}
	r.mistakes = append(r.mistakes, m)
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// broken says that a file is not YAML.
func (r *reader) broken(err error) {
	text := err.Error()
	n := &yaml.Node{Line: 1, Column: 1}
	if found := yamlLine.FindStringSubmatch(text); found[1] != "" {
		n.Line, _ = strconv.Atoi(found[1])
	}
	r.bad(n, "", "is not YAML: %s", yamlLine.ReplaceAllString(text, ""))
}

func (r *reader) read(data []byte) {
	docs, err := documents(data)
	switch {
	case err != nil:
		r.broken(err)
	case len(docs) == 0 || len(docs[0].Content) == 0:
		r.bad(nil, "it needs a domain and its descriptors", "is empty")
	case len(docs) > 1:
		r.bad(docs[1], "put it into a file of its own", "a second document begins")
	default:
		r.domain(docs[0].Content[0])
	}
}

// fields reads a mapping: what the table has for each name is called with its
// value. It reports whether n is a mapping.
func (r *reader) fields(n *yaml.Node, what string, table map[string]func(*yaml.Node)) bool {
	n, leave := r.enter(n)
	defer leave()
	if n == nil {
		return false
	}
	if n.Kind != yaml.MappingNode {
		r.bad(n, "", "%s must be a mapping, with the fields %s", what, list(table))
		return false
	}
	seen := make(map[string]int)
	r.each(n, what, table, seen)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if merges(n.Content[i]) {
			r.merge(n.Content[i+1], what, table, seen)
		}
	}
	return true
}

func (r *reader) each(n *yaml.Node, what string, table map[string]func(*yaml.Node), seen map[string]int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		f := table[k.Value]
		switch {
		case merges(k):
		case k.Kind != yaml.ScalarNode || f == nil:
			r.bad(k, "it has "+list(table), "unknown field %q in %s", k.Value, what)
		case seen[k.Value] > 0:
			r.bad(k, "", "field %q stands already on line %d", k.Value, seen[k.Value])
		default:
			seen[k.Value] = k.Line
			f(n.Content[i+1])
		}
	}
}

func merges(k *yaml.Node) bool { return k.Kind == yaml.ScalarNode && k.Tag == "!!merge" }

// merge reads fields that are taken over from another mapping; those that stood
// earlier win.
func (r *reader) merge(n *yaml.Node, what string, table map[string]func(*yaml.Node), seen map[string]int) {
	n, leave := r.enter(n)
	defer leave()
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, one := range n.Content {
			r.merge(one, what, table, seen)
		}
	case n.Kind == yaml.MappingNode:
		rest := maps.Clone(table)
		for name := range seen {
			rest[name] = func(*yaml.Node) {}
		}
		fresh := make(map[string]int)
		r.each(n, what, rest, fresh)
		for name, line := range fresh {
			seen[name] = max(seen[name], line)
		}
	default:
		r.bad(n, "", "only mappings can be merged")
	}
}

// items reads a list.
func (r *reader) items(n *yaml.Node, what string, f func(*yaml.Node)) {
	n, leave := r.enter(n)
	defer leave()
	switch {
	case n == nil || null(n):
	case n.Kind != yaml.SequenceNode:
		r.bad(n, "", "%s must be a list", what)
	default:
		for _, one := range n.Content {
			f(one)
		}
	}
}

// enter follows aliases, and returns nil where the file must not be followed any
// further. leave is for when the node is done.
func (r *reader) enter(n *yaml.Node) (_ *yaml.Node, leave func()) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	r.nodes++
	switch {
	case r.nodes > maxNodes:
		if r.nodes == maxNodes+1 {
			r.bad(n, "", "has more than %d parts, its aliases followed", maxNodes)
		}
		return nil, func() {}
	case r.open[n] || len(r.open) >= maxDepth:
		r.bad(n, "", "is nested deeper than %d levels, or in itself", maxDepth)
		return nil, func() {}
	}
	r.open[n] = true
	return n, func() { delete(r.open, n) }
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func list(table map[string]func(*yaml.Node)) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}

// text, flag and count read scalars into where they belong.

func (r *reader) text(name string, to *string) func(*yaml.Node) {
	return r.scalar(name, "text", to)
}

func (r *reader) flag(name string, to *bool) func(*yaml.Node) {
	return r.scalar(name, "true or false", to)
}

func (r *reader) count(name string, to **uint32) func(*yaml.Node) {
	return r.scalar(name, "a whole number from 0 to 4294967295", to)
}

func (r *reader) scalar(name, words string, to any) func(*yaml.Node) {
	return func(n *yaml.Node) {
		n, leave := r.enter(n)
		defer leave()
		switch {
		case n == nil || null(n):
		case n.Kind != yaml.ScalarNode || !decoded(n, to):
			r.bad(n, "", "%s must be %s", name, words)
		}
	}
}

// decoded takes a text as it stands in the file, also where it looks like a number.
func decoded(n *yaml.Node, to any) bool {
	if s, ok := to.(*string); ok {
		*s = n.Value
		return true
	}
	return n.Decode(to) == nil
}
