package config

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/internal/complain"
)

// A node is a piece of a configuration that knows where it stands. Aliases and
// merge keys are resolved, so that nothing later has to know of them.
type node struct {
	kind   kind
	text   string  // of a scalar
	items  []*node // of a list
	fields []entry // of a mapping, in order, without repetitions

	path         string // "upstreams.s3.limits.put.rate"
	file         string
	line, column int
	preset       string // the preset it comes from; "" if it is the file's own
}

type kind uint8

const (
	empty kind = iota // nothing stands there
	scalar
	list
	mapping
)

type entry struct {
	name  string
	key   *node // where the name stands
	value *node
}

// get is the value of a field, nil if there is none.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.fields {
		if e.name == name {
			return e.value
		}
	}
	return nil
}

// all is the fields of a node, none if there is no such node.
func (n *node) all() []entry {
	if n == nil {
		return nil
	}
	return n.fields
}

// child is the path of a field of n.
func (n *node) child(name string) string {
	if n.path == "" {
		return show(name)
	}
	return n.path + "." + show(name)
}

// Aliases can make a small file stand for a huge one, so what it stands for is
// bounded, too.
const (
	maxNodes = 100_000
	maxDepth = 20
)

// tree reads YAML. What it returns is worth nothing if there were complaints.
func (d *decoder) tree(data []byte) *node {
	if len(data) > maxFile {
		d.complain(Complaint{File: d.file, Problem: fmt.Sprintf("is larger than %d MiB", maxFile>>20)})
		return &node{}
	}
	doc, second, err := parseYAML(data)
	if err != nil {
		d.complain(d.broken(err, data))
		return &node{}
	}
	if second != nil {
		d.bad(&node{file: d.file, line: second.Line, column: second.Column}, "", "a second document begins; a configuration is one, without ---")
		return &node{}
	}
	if doc == nil || len(doc.Content) == 0 {
		return &node{file: d.file, line: 1, column: 1}
	}
	g := grower{d: d, open: make(map[*yaml.Node]bool)}
	return g.grow(doc.Content[0], "", 0)
}

// parseYAML is the first document, nil if there is none, and the second, which
// should not be there. The parser reports its errors by panics of its own; should
// another one escape, it is an error like them and not the end of the program.
func parseYAML(data []byte) (doc, second *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for _, n := range []**yaml.Node{&doc, &second} {
		var next yaml.Node
		if err := decoder.Decode(&next); err == io.EOF {
			return doc, second, nil
		} else if err != nil {
			return nil, nil, err
		}
		*n = &next
	}
	return doc, second, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// broken is the complaint about what is not YAML.
func (d *decoder) broken(err error, data []byte) Complaint {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	c := Complaint{File: d.file, Line: brokenLine(data), Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if c.Line == 0 {
			c.Line, _ = strconv.Atoi(m[1])
		}
	}
	c.Problem = "broken YAML: " + text
	if bytes.Contains(data, []byte("\n\t")) {
		c.Hint = "YAML is indented by spaces, not by tabs"
	}
	return c
}

// brokenLine is the line after the longest beginning that is whole, 0 if it
// takes too long to find. The parser itself names the line where the mapping
// began that it could not finish, which may be the first of the file.
func brokenLine(data []byte) int {
	const most = 16 << 20 // bytes to parse
	parsed := 0
	for len(data) > 0 {
		data = data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
		if parsed += len(data); parsed > most {
			return 0
		}
		if _, _, err := parseYAML(data); err == nil {
			break
		}
	}
	return bytes.Count(data, []byte("\n")) + 1
}

// A grower makes a tree of what the YAML parser found.
type grower struct {
	d     *decoder
	open  map[*yaml.Node]bool // aliases being followed
	nodes int
}

func (g *grower) grow(y *yaml.Node, path string, depth int) *node {
	n := &node{path: path, file: g.d.file, line: y.Line, column: y.Column}
	g.nodes++
	switch {
	case g.nodes == maxNodes:
		g.d.bad(n, "", "has more than %d values, aliases written out", maxNodes)
		fallthrough
	case g.nodes > maxNodes:
		return n
	case depth > maxDepth:
		g.d.bad(n, "", "is nested too deeply")
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return g.follow(n, y, depth)
	case yaml.ScalarNode:
		if y.ShortTag() != "!!null" {
			n.kind, n.text = scalar, y.Value
		}
	case yaml.SequenceNode:
		n.kind = list
		for i, item := range y.Content {
			n.items = append(n.items, g.grow(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapping
		g.fields(n, y, depth)
	}
	return n
}

// follow grows what an alias stands for, which keeps its own line.
func (g *grower) follow(n *node, y *yaml.Node, depth int) *node {
	if y.Alias == nil || g.open[y.Alias] {
		g.d.bad(n, "", "alias %s refers to what it is part of", complain.Quote("*"+y.Value))
		return n
	}
	g.open[y.Alias] = true
	defer delete(g.open, y.Alias)
	return g.grow(y.Alias, n.path, depth+1)
}

func (g *grower) fields(n *node, y *yaml.Node, depth int) {
	var merged []*yaml.Node
	seen := make(map[string]*node)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		key := &node{path: n.child(k.Value), file: g.d.file, line: k.Line, column: k.Column}
		switch {
		case k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge":
			merged = append(merged, v)
		case k.Kind != yaml.ScalarNode:
			key.path = n.path
			g.d.bad(key, "", "want a plain word before the colon")
		case seen[k.Value] != nil:
			g.d.bad(key, "", "stands here twice, first in line %d", seen[k.Value].line)
		default:
			seen[k.Value] = key
			n.fields = append(n.fields, entry{k.Value, key, g.grow(v, key.path, depth+1)})
		}
	}
	for _, v := range merged {
		if v.Kind != yaml.SequenceNode {
			g.merge(n, v, seen, depth)
			continue
		}
		for _, one := range v.Content {
			g.merge(n, one, seen, depth)
		}
	}
}

// merge adds the fields of "<<: *alias" that the mapping does not have itself.
func (g *grower) merge(n *node, y *yaml.Node, seen map[string]*node, depth int) {
	from := g.grow(y, n.path, depth+1)
	if from.kind != mapping && g.nodes < maxNodes {
		g.d.bad(from, "", "<< wants a mapping")
	}
	for _, e := range from.fields {
		if seen[e.name] == nil {
			seen[e.name] = e.key
			n.fields = append(n.fields, e)
		}
	}
}
