package answers

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// Limits of a file. They exceed what a person writes, and keep memory small and searches within milliseconds.
const (
	maxEntries = 10_000
	maxTitles  = 200      // questions and keywords of an entry
	maxTitle   = 1 << 10  // bytes of a question or keyword
	maxAnswer  = 64 << 10 // bytes of an answer
)

var bounds = doc.Bounds{Bytes: 8 << 20, Nodes: 500_000, Depth: 10, Complaints: 100}

// An entry is an answer with its questions.
type entry struct {
	id        string
	answers   map[string]string // by language
	languages []string          // of the answers, in the order of the file
	node      *doc.Node

	titles map[string][]title // by language
}

// A decoder reads a file and collects its mistakes.
type decoder struct {
	doc.Reader

	ids     map[string]*doc.Node
	asked   map[string]place // place of each question, by its text
	entries []entry
}

type place struct {
	entry int
	line  int
}

// parse reads a file. The error is of type Errors with all mistakes.
func parse(file string, data []byte) ([]entry, error) {
	d := &decoder{ids: make(map[string]*doc.Node), asked: make(map[string]place)}
	d.Reader = doc.Reader{File: file, What: "a book", Bounds: bounds}
	root := d.Read(data)
	switch {
	case root == nil:
	case root.Kind == doc.Empty:
		d.Bad(root, "begin it with answers:", "is empty")
	default:
		d.document(root)
	}
	if len(d.Errs) > 0 {
		return nil, d.Errs.Sorted()
	}
	return d.entries, nil
}

func (d *decoder) document(n *doc.Node) {
	list := false
	d.fields(n, map[string]func(*doc.Node){
		"answers": func(n *doc.Node) {
			list = true
			d.list(n)
		},
	})
	if !list && len(d.Errs) == 0 {
		d.Missing(n, "answers", "", "is missing: a list of entries")
	}
}

func (d *decoder) list(n *doc.Node) {
	switch {
	case n.Kind != doc.List:
		d.Bad(n, "", "want a list of entries, each with questions and an answer")
		return
	case len(n.Items) == 0:
		d.Bad(n, "", "has no entries")
	case len(n.Items) > maxEntries:
		d.Bad(n, "", "has %d entries; at most %d are allowed", len(n.Items), maxEntries)
		return
	}
	for _, e := range n.Items {
		d.entry(e)
	}
}

func (d *decoder) fields(n *doc.Node, known map[string]func(*doc.Node)) {
	if n.Kind != doc.Mapping {
		d.Bad(n, "", "want fields: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		return
	}
	d.Fields(n, known)
}

func (d *decoder) text(n *doc.Node, what string, most int) (string, bool) {
	s := strings.TrimSpace(n.Text)
	switch {
	case n.Kind == doc.Empty, n.Kind == doc.Scalar && s == "":
		d.Bad(n, "write "+what+", or leave the field out", "is empty")
	case n.Kind != doc.Scalar:
		d.Bad(n, "", "want %s, as a text", what)
	case len(s) > most:
		d.Bad(n, "", "has %d bytes; at most %d are allowed", len(s), most)
	default:
		return s, true
	}
	return "", false
}
