package doc

import (
	"bytes"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Read parses YAML. For an empty file it returns a node of kind Empty. For a file that it cannot parse it adds a complaint and
// returns nil. After other complaints the returned node is usable, so that the caller can report all mistakes.
func (r *Reader) Read(data []byte) *Node {
	whole := &Node{File: r.File}
	if len(data) > r.Bounds.Bytes {
		r.Bad(whole, "", "is larger than %d MiB", r.Bounds.Bytes>>20)
		return nil
	}
	first, second, err := parseYAML(data)
	if err != nil {
		r.Complain(r.broken(err, data))
		return nil
	}
	if second != nil {
		r.Bad(&Node{File: r.File, Line: second.Line, Column: second.Column}, "", "a second document begins; %s must be one document, without ---", r.What)
		return nil
	}
	if first == nil || len(first.Content) == 0 {
		return &Node{File: r.File, Line: 1, Column: 1}
	}
	g := grower{r: r, open: make(map[*yaml.Node]bool)}
	return g.grow(first.Content[0], "", 0)
}

// parseYAML returns the first document, or nil, and the second, which should not exist. The parser reports its errors by
// internal panics. If another panic escapes, parseYAML returns it as an error.
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

// brokenLine returns the line after the longest valid beginning, or 0 if the search takes too long. The parser itself reports
// the line where the incomplete mapping begins, which may be the first of the file.
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

// A grower builds a tree of nodes from the YAML parser's nodes.
type grower struct {
	r     *Reader
	open  map[*yaml.Node]bool // aliases that are being resolved
	nodes int
}

func (g *grower) grow(y *yaml.Node, path string, depth int) *Node {
	n := &Node{Path: path, File: g.r.File, Line: y.Line, Column: y.Column}
	g.nodes++
	switch {
	case g.nodes == g.r.Bounds.Nodes:
		g.r.Bad(n, "", "has more than %d values, aliases written out", g.r.Bounds.Nodes)
		fallthrough
	case g.nodes > g.r.Bounds.Nodes:
		return n
	case depth > g.r.Bounds.Depth:
		g.r.Bad(n, "", "is nested too deeply")
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return g.follow(n, y, depth)
	case yaml.ScalarNode:
		if y.ShortTag() != "!!null" {
			n.Kind, n.Text, n.tag = Scalar, y.Value, y.Tag
		}
	case yaml.SequenceNode:
		n.Kind = List
		for i, item := range y.Content {
			n.Items = append(n.Items, g.grow(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Mapping
		g.fields(n, y, depth)
	}
	return n
}

// follow resolves an alias. The resulting node has the line of the alias.
func (g *grower) follow(n *Node, y *yaml.Node, depth int) *Node {
	if y.Alias == nil || g.open[y.Alias] {
		g.r.Bad(n, "", "alias %s refers to what it is part of", Quote("*"+y.Value))
		return n
	}
	g.open[y.Alias] = true
	defer delete(g.open, y.Alias)
	return g.grow(y.Alias, n.Path, depth+1)
}

func (g *grower) fields(n *Node, y *yaml.Node, depth int) {
	var merged []*yaml.Node
	seen := make(map[string]*Node)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		key := &Node{Path: n.Child(k.Value), File: g.r.File, Line: k.Line, Column: k.Column}
		switch {
		case k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge":
			merged = append(merged, v)
		case k.Kind != yaml.ScalarNode:
			key.Path = n.Path
			g.r.Bad(key, "", "want a plain name before the colon")
		case seen[k.Value] != nil:
			g.r.Bad(key, "", "is given twice, first in line %d", seen[k.Value].Line)
		default:
			seen[k.Value] = key
			n.Fields = append(n.Fields, Entry{k.Value, key, g.grow(v, key.Path, depth+1)})
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

// merge adds the fields of "<<: *alias" that the mapping itself lacks.
func (g *grower) merge(n *Node, y *yaml.Node, seen map[string]*Node, depth int) {
	from := g.grow(y, n.Path, depth+1)
	if from.Kind != Mapping && g.nodes < g.r.Bounds.Nodes {
		g.r.Bad(from, "", "<< needs a mapping")
	}
	for _, e := range from.Fields {
		if seen[e.Name] == nil {
			seen[e.Name] = e.Key
			n.Fields = append(n.Fields, e)
		}
	}
}
