package answers

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/internal/doc"
)

// What a file may have: far more than anyone writes by hand, and little enough
// to be held in memory and searched in milliseconds.
const (
	maxFile    = 8 << 20 // bytes
	maxEntries = 10_000
	maxTitles  = 200      // questions and keywords of an entry
	maxTitle   = 1 << 10  // bytes of one
	maxAnswer  = 64 << 10 // bytes
	maxErrors  = 100      // complaints
)

// An entry is an answer and what is known of it.
type entry struct {
	id        string
	answers   map[string]string // by language
	languages []string          // of the answers, in the order of the file
	node      *yaml.Node
	path      string

	titles map[string][]title // by language
}

// A decoder reads a file, and collects what is wrong with it.
type decoder struct {
	file string
	errs Errors

	ids     map[string]*yaml.Node
	asked   map[string]place // who has a question, by its terms
	entries []entry
}

type place struct {
	entry int
	line  int
}

func (d *decoder) bad(n *yaml.Node, path, hint, format string, args ...any) {
	switch {
	case len(d.errs) < maxErrors:
		d.errs = append(d.errs, Complaint{File: d.file, Line: n.Line, Column: n.Column, Field: path, Problem: fmt.Sprintf(format, args...), Hint: hint})
	case len(d.errs) == maxErrors:
		d.errs = append(d.errs, Complaint{File: d.file, Line: 1 << 30, Problem: "and more mistakes"})
	}
}

// parse reads a file. The error is of type Errors and has every mistake.
func parse(file string, data []byte) ([]entry, error) {
	d := &decoder{file: file, ids: make(map[string]*yaml.Node), asked: make(map[string]place)}
	if root := d.root(data); root != nil {
		d.document(root)
	}
	if len(d.errs) > 0 {
		return nil, d.errs.Sorted()
	}
	return d.entries, nil
}

// root is the value of the file, nil after a complaint.
func (d *decoder) root(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.errs = append(d.errs, Complaint{File: d.file, Problem: fmt.Sprintf("is larger than %d MiB", maxFile>>20)})
		return nil
	}
	var docs [2]yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for i := range docs {
		err := decode(decoder, &docs[i])
		if err == io.EOF {
			break
		}
		if err != nil {
			d.errs = append(d.errs, broken(d.file, err, data))
			return nil
		}
	}
	switch {
	case docs[1].Kind != 0:
		d.bad(&docs[1], "", "", "a second document begins; a book is one, without ---")
	case len(docs[0].Content) == 0:
		d.bad(&yaml.Node{Line: 1, Column: 1}, "", "begin it with answers:", "is empty")
	default:
		return docs[0].Content[0]
	}
	return nil
}

// decode has the parser's panics, should one escape it, as errors.
func decode(from *yaml.Decoder, to *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return from.Decode(to)
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

func broken(file string, err error, data []byte) Complaint {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " ")
	c := Complaint{File: file, Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		c.Line, _ = strconv.Atoi(m[1])
	}
	c.Problem = "broken YAML: " + text
	switch {
	case bytes.Contains(data, []byte("\n\t")):
		c.Hint = "YAML is indented by spaces, not by tabs"
	case bytes.Contains(data, []byte("?]")) || bytes.Contains(data, []byte("?,")):
		c.Hint = "a text that ends with ? stands in quotes, or on a line of its own after a dash, not plainly in [ ]"
	}
	return c
}

func (d *decoder) document(n *yaml.Node) {
	list := false
	d.fields(n, "", map[string]func(*yaml.Node, string){
		"answers": func(n *yaml.Node, path string) {
			list = true
			d.list(n, path)
		},
	})
	if !list && len(d.errs) == 0 {
		d.bad(n, "answers", "", "is missing: a list of entries")
	}
}

func (d *decoder) list(n *yaml.Node, path string) {
	n = d.follow(n, path)
	switch {
	case n.Kind != yaml.SequenceNode:
		d.bad(n, path, "", "want a list of entries, each with questions and an answer")
		return
	case len(n.Content) == 0:
		d.bad(n, path, "", "has no entries")
	case len(n.Content) > maxEntries:
		d.bad(n, path, "", "has %d entries, and may have %d", len(n.Content), maxEntries)
		return
	}
	for i, e := range n.Content {
		d.entry(e, fmt.Sprintf("%s[%d]", path, i))
	}
}

// fields reads a mapping field by field.
func (d *decoder) fields(n *yaml.Node, path string, known map[string]func(*yaml.Node, string)) {
	n = d.follow(n, path)
	if n.Kind != yaml.MappingNode {
		d.bad(n, path, "", "want fields: %s", strings.Join(sortedKeys(known), ", "))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+show(key.Value), ".")
		read, ok := known[key.Value]
		switch {
		case seen[key.Value]:
			d.bad(key, at, "", "stands there twice")
		case !ok:
			d.bad(key, at, doc.Suggest(key.Value, sortedKeys(known)), "there is no field %s", doc.Quote(key.Value))
		default:
			read(value, at)
		}
		seen[key.Value] = true
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// longestName is the longest that stands in a path as it is.
const longestName = 60

// show is a name as it stands in a path.
func show(name string) string {
	if name == "" || len(name) > longestName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '.' || r > '~' }) {
		return doc.Quote(name)
	}
	return name
}

// follow is what an alias stands for. An alias inside of what it stands for is
// refused by all who read on: it is a list or mapping where a text should be.
func (d *decoder) follow(n *yaml.Node, path string) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// text is a value that is a text.
func (d *decoder) text(n *yaml.Node, path, what string, most int) (string, bool) {
	n = d.follow(n, path)
	if n.Kind != yaml.ScalarNode {
		d.bad(n, path, "", "want %s, as a text", what)
		return "", false
	}
	s := strings.TrimSpace(n.Value)
	switch {
	case s == "" || n.ShortTag() == "!!null":
		d.bad(n, path, "write "+what+", or leave the field out", "is empty")
	case len(s) > most:
		d.bad(n, path, "", "has %d bytes, and may have %d", len(s), most)
	default:
		return s, true
	}
	return "", false
}
