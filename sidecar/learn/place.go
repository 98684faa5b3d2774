package learn

import (
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A node is a value at a position in a file.
type node = doc.Node

// bounds are larger than those of a configuration, because the file was already parsed.
var bounds = doc.Bounds{Bytes: 16 << 20, Nodes: 1 << 20, Depth: 1000, Complaints: 1}

// tree returns the node of an upstream.
func (c *changer) tree(upstream string) (*node, error) {
	r := doc.Reader{File: c.name, What: "a configuration", Bounds: bounds}
	at := field(field(r.Read(textOf(c.rows)), "upstreams"), upstream)
	if at == nil || at.Kind != doc.Mapping || len(at.Fields) == 0 {
		return nil, errForm
	}
	return at, nil
}

// field returns a field of a mapping. It returns nil if there is none. For a value before its name, which belongs to an
// alias that other mappings share, it returns an empty node.
func field(n *node, name string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.Fields {
		if e.Name != name {
			continue
		}
		if v := e.Value; e.Key != nil && (v.Line < e.Key.Line || v.Line == e.Key.Line && v.Column < e.Key.Column) {
			return &node{Kind: doc.Empty}
		}
		return e.Value
	}
	return nil
}

// offset returns where a node begins in its line. It returns false if the node is not in the file.
func (c *changer) offset(n *node) (row, at int, ok bool) {
	row = n.Line - 1
	if row < 0 || row >= len(c.rows) {
		return 0, 0, false
	}
	text := c.rows[row].text
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		if at += size; size == 0 {
			return 0, 0, false
		}
	}
	return row, at, true
}

// replace replaces the value of a scalar.
func (c *changer) replace(n *node, value string) error {
	if n == nil || n.Kind != doc.Scalar {
		return errForm
	}
	row, at, ok := c.offset(n)
	if !ok {
		return errForm
	}
	text := c.rows[row].text
	for _, form := range []string{n.Text, `"` + n.Text + `"`, "'" + n.Text + "'"} {
		if n.Text != "" && strings.HasPrefix(text[at:], form) {
			c.rows[row].set(text[:at] + value + text[at+len(form):])
			return nil
		}
	}
	return errForm
}

// add adds a limit to an upstream, which may have no limits yet.
func (c *changer) add(upstream, limits *node, text string) error {
	switch {
	case limits == nil && c.begins(upstream, '{'):
		return c.inFlow(upstream, "limits: {"+text+"}")
	case limits == nil:
		first := upstream.Fields[0].Key
		return c.behind(upstream, []string{indent(first) + "limits:", indent(first) + c.step(first) + text})
	case limits.Kind != doc.Mapping:
		return errForm
	case c.begins(limits, '{'):
		return c.inFlow(limits, text)
	case len(limits.Fields) == 0 || c.begins(limits, '&'):
		return errForm
	}
	return c.behind(limits, []string{indent(limits.Fields[0].Key) + text})
}

// begins reports whether a node begins with a byte.
func (c *changer) begins(n *node, b byte) bool {
	row, at, ok := c.offset(n)
	return ok && at < len(c.rows[row].text) && c.rows[row].text[at] == b
}

func indent(n *node) string { return strings.Repeat(" ", n.Column-1) }

// step returns the indentation that the file uses.
func (c *changer) step(n *node) string {
	if n.Column == 9 {
		return "    "
	}
	return "  "
}

// behind inserts lines after a block.
func (c *changer) behind(n *node, lines []string) error {
	last := end(n)
	if last > len(c.rows) {
		return errForm
	}
	c.rows = insert(c.rows, last, lines)
	return nil
}

// end returns the last line of a node. For a flow mapping, it is the line where the last part begins. try verifies
// the result.
func end(n *node) int {
	last := n.Line
	for _, part := range n.Items {
		last = max(last, end(part))
	}
	for _, e := range n.Fields {
		last = max(last, end(e.Value))
	}
	return last
}

// inFlow inserts a field before the closing brace of a mapping.
func (c *changer) inFlow(n *node, text string) error {
	row, at, ok := c.offset(n)
	if !ok || !strings.HasPrefix(c.rows[row].text[at:], "{") {
		return errForm
	}
	var f flow
	for ; row < len(c.rows); row, at = row+1, 0 {
		line := c.rows[row].text
		if end := f.ends(line, at); end >= 0 {
			c.rows[row].set(before(line[:end], text) + line[end:])
			return nil
		}
	}
	return errForm
}

// A flow is the state of a flow value that is read line by line.
type flow struct {
	depth int  // open braces and brackets
	quote byte // of the current scalar; 0 means none
}

// ends scans a line and returns the position of the brace that closes the value. It is negative if there is none.
func (f *flow) ends(line string, from int) int {
	for i := from; i < len(line); i++ {
		switch b := line[i]; {
		case f.quote != 0:
			i += f.quoted(b)
		case (b == '"' || b == '\'') && opens(line[:i]):
			f.quote = b
		case b == '#' && i > 0 && line[i-1] == ' ':
			return -1
		case b == '{' || b == '[':
			f.depth++
		case b == '}' || b == ']':
			if f.depth--; f.depth == 0 {
				return i
			}
		}
	}
	return -1
}

// quoted scans a quoted scalar. It returns the number of additional bytes that belong to the current one.
func (f *flow) quoted(b byte) int {
	if f.quote == '"' && b == '\\' {
		return 1
	}
	if b == f.quote {
		f.quote = 0
	}
	return 0
}

// opens reports whether a quotation mark after text opens a scalar. Otherwise it is part of a scalar.
func opens(text string) bool {
	text = strings.TrimRight(text, " ")
	return text == "" || strings.ContainsRune("{[,:", rune(text[len(text)-1]))
}

// before returns the text before a closing brace, with a field added.
func before(line, text string) string {
	bare := strings.TrimRight(line, " ")
	if strings.HasSuffix(bare, "{") || strings.HasSuffix(bare, ",") || bare == "" {
		return bare + text
	}
	return bare + ", " + text
}
