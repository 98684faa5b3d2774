package answers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed1158cd35/weir/internal/doc"
)

// MaxRows and MaxBytes are the maximum number of rows of a table, and the maximum total size of their texts.
const (
	MaxRows  = maxEntries
	MaxBytes = 8 << 20
)

// A Row is an entry in a table. Its fields are those of an entry in a file, made of string, []any and map[string]any.
type Row struct {
	ID     string
	Fields map[string]any // without id
}

// Rows replaces the answers with those of a table. name is the table's name in error messages. Invalid rows are skipped,
// and their mistakes are returned, at most a hundred. An error changes nothing.
func (b *Book) Rows(name string, rows []Row) (bad Errors, err error) {
	if len(rows) > MaxRows {
		return nil, fmt.Errorf("static answers: %s: has more than %d rows", name, MaxRows)
	}
	rows = slices.SortedFunc(slices.Values(rows), func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	d := &decoder{ids: make(map[string]*doc.Node), asked: make(map[string]place)}
	d.Reader = doc.Reader{File: name, What: "a table", Bounds: bounds}
	d.Bounds.Complaints = 0 // no limit here: an unreported row would count as valid
	for _, r := range rows {
		before := len(d.Errs)
		d.entry(nodeOf(r, name))
		if len(d.Errs) > before {
			d.drop()
		}
	}
	l, err := newLibrary(d.entries)
	if err != nil {
		return nil, fmt.Errorf("static answers: %s: %w", name, err)
	}
	b.library.Store(l)
	return d.Errs[:min(len(d.Errs), bounds.Complaints)], nil
}

func (d *decoder) drop() {
	last := len(d.entries) - 1
	for language, titles := range d.entries[last].titles {
		for _, t := range titles {
			if key := language + " " + plainText(t.text); d.asked[key].entry == last {
				delete(d.asked, key)
			}
		}
	}
	d.entries = d.entries[:last]
}

func nodeOf(r Row, name string) *doc.Node {
	at := fmt.Sprintf("%s, row %s", name, doc.Quote(r.ID))
	fields := maps.Clone(r.Fields)
	if fields == nil {
		fields = make(map[string]any)
	}
	fields["id"] = r.ID
	return grown(fields, at, "")
}

func grown(v any, file, path string) *doc.Node {
	n := &doc.Node{File: file, Path: path}
	switch v := v.(type) {
	case string:
		n.Kind, n.Text = doc.Scalar, v
	case []any:
		n.Kind = doc.List
		for i, item := range v {
			n.Items = append(n.Items, grown(item, file, fmt.Sprintf("%s[%d]", path, i)))
		}
	case map[string]any:
		n.Kind = doc.Mapping
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := n.Child(name)
			n.Fields = append(n.Fields, doc.Entry{Name: name, Key: &doc.Node{File: file, Path: at}, Value: grown(v[name], file, at)})
		}
	}
	return n
}
