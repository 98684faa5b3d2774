package look

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Bounds of the output, because programs other than weir write to a trace.
const (
	mostDepth = 40   // of indentation
	mostNote  = 200  // characters of a value
	mostSpans = 5000 // spans that are shown
)

// A node is a span with its children.
type node struct {
	*Span
	beneath []*node
}

// Write writes a trace as a tree: the start, duration, name, service, error and notes of each span.
func (t Trace) Write(w io.Writer) error {
	tops, began, took := t.tree()
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %d spans, %s, %s\n", t.ID, len(t.Spans), length(took), began.UTC().Format("2006-01-02T15:04:05.000Z"))
	left := mostSpans
	for _, n := range tops {
		n.write(&b, began, 0, &left)
	}
	if left < 0 {
		fmt.Fprintf(&b, "and %d more\n", -left)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tree returns the root spans, with children sorted by start. A span whose parent is missing, or is its descendant, is a root.
func (t Trace) tree() (tops []*node, began time.Time, took time.Duration) {
	all := make(map[string]*node, len(t.Spans))
	nodes := make([]*node, 0, len(t.Spans))
	var end time.Time
	for i := range t.Spans {
		s := &t.Spans[i]
		if all[s.ID] != nil { // a duplicate: the span that has ended counts
			if all[s.ID].Open {
				all[s.ID].Span = s
			}
			continue
		}
		n := &node{Span: s}
		all[s.ID], nodes = n, append(nodes, n)
		if began.IsZero() || s.Began.Before(began) {
			began = s.Began
		}
		if at := s.Began.Add(s.Took); at.After(end) {
			end = at
		}
	}
	for _, n := range nodes {
		if over := all[n.Parent]; over != nil && !within(all, over, n) {
			over.beneath = append(over.beneath, n)
		} else {
			tops = append(tops, n)
		}
	}
	for _, n := range nodes {
		slices.SortStableFunc(n.beneath, byBegin)
	}
	slices.SortStableFunc(tops, byBegin)
	return tops, began, end.Sub(began)
}

func byBegin(a, b *node) int { return a.Began.Compare(b.Began) }

// within reports whether a span is another or its descendant, according to their parents.
func within(all map[string]*node, n, of *node) bool {
	for range len(all) {
		if n == of {
			return true
		}
		if n = all[n.Parent]; n == nil {
			return false
		}
	}
	return true
}

func (n *node) write(b *strings.Builder, began time.Time, depth int, left *int) {
	if *left--; *left >= 0 {
		n.line(b, began, min(depth, mostDepth))
	}
	for _, under := range n.beneath {
		under.write(b, began, depth+1, left)
	}
}

func (n *node) line(b *strings.Builder, began time.Time, depth int) {
	took := length(n.Took)
	if n.Open {
		took = "open"
	}
	fmt.Fprintf(b, "%9s %9s  %s%s", "+"+length(n.Began.Sub(began)), took, strings.Repeat("  ", depth), plain(cmp.Or(n.Name, "?")))
	if n.Service != "" && n.Service != n.Name {
		fmt.Fprintf(b, "  (%s)", plain(n.Service))
	}
	if n.Error != "" {
		fmt.Fprintf(b, "  ERROR %s", plain(n.Error))
	}
	b.WriteByte('\n')
	for _, note := range n.Notes {
		fmt.Fprintf(b, "%s  %s = %s\n", strings.Repeat(" ", 20+2*depth), plain(note.Name), plain(note.Value))
	}
}

func length(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%dµs", d.Microseconds())
}

// plain removes terminal control characters from a foreign text, and shortens it.
func plain(s string) string {
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar {
			return '?'
		}
		return c
	}, s)
	if r := []rune(s); len(r) > mostNote {
		return string(r[:mostNote]) + "..."
	}
	return s
}
