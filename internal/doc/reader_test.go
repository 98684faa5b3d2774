package doc

import (
	"fmt"
	"strings"
	"testing"
)

func reader() *Reader {
	return &Reader{File: "f", What: "a file", Bounds: Bounds{Bytes: 1 << 20, Nodes: 100, Depth: 5, Complaints: 3}}
}

// shown prints a tree, with the position of each value.
func shown(n *Node) string {
	switch n.Kind {
	case Scalar:
		return fmt.Sprintf("%s@%d", n.Text, n.Line)
	case List:
		var all []string
		for _, i := range n.Items {
			all = append(all, shown(i))
		}
		return "[" + strings.Join(all, " ") + "]"
	case Mapping:
		var all []string
		for _, e := range n.Fields {
			all = append(all, e.Name+"="+shown(e.Value))
		}
		return "{" + strings.Join(all, " ") + "}"
	}
	return "-"
}

func TestWhatStandsThere(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "-",
		"# a word":                               "-",
		"a":                                      "a@1",
		"a: 1\nb: [x, y]\nc:\nd: {e: ~}":         "{a=1@1 b=[x@2 y@2] c=- d={e=-}}",
		"a: &x {p: 1, q: 2}\nb: *x":              "{a={p=1@1 q=2@1} b={p=1@1 q=2@1}}",
		"a: &x {p: 1, q: 2}\nb:\n <<: *x\n q: 3": "{a={p=1@1 q=2@1} b={q=3@4 p=1@1}}",
		"a: &x {p: 1}\nb: &y {p: 2}\nc: {<<: [*x, *y]}": "{a={p=1@1} b={p=2@2} c={p=1@1}}",
		"'': 1": "{=1@1}",
	} {
		r := reader()
		if n := r.Read([]byte(text)); n == nil || shown(n) != want || len(r.Errs) > 0 {
			t.Errorf("%q: %v, want %s\n%v", text, n, want, r.Errs)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                       "f:1:1: broken YAML",
		"a: 1\nb:\n\tc: 2":           "indent YAML with spaces, not tabs",
		"a: 1\n---\nb: 2":            "a second document begins; a file must be one document, without ---",
		"a: 1\na: 2":                 "f:2:1: a: is given twice, first in line 1",
		"a: &x [*x]":                 `f:1:8: a[0][0]: alias "*x" refers to what it is part of`,
		"? [a]\n: b":                 "want a plain name before the colon",
		"a: {<<: 7}":                 "<< needs a mapping",
		"[[[[[[[a]]]]]]]":            "is nested too deeply",
		strings.Repeat("- a\n", 101): "has more than 100 values, aliases written out",
		strings.Repeat("#", 1<<21):   "f: is larger than 1 MiB",
		"[&a [x, x, x, x, x, x, x, x, x, x], *a, *a, *a, *a, *a, *a, *a, *a, *a]": "has more than 100 values",
	} {
		r := reader()
		r.Read([]byte(text))
		if err := r.Errs.Error(); !strings.Contains(err, want) {
			t.Errorf("%.60q: %s, want %s", text, err, want)
		}
	}
}

func TestComplaintsAreBounded(t *testing.T) {
	r := reader()
	for i := range 10 {
		r.Bad(&Node{File: "f", Line: i + 1}, "", "is bad")
	}
	if lines := strings.Split(r.Errs.Sorted().Error(), "\n"); len(lines) != 4 || !strings.HasSuffix(lines[3], "and more mistakes") {
		t.Errorf("%q", lines)
	}
}

func TestFieldsAreReadByName(t *testing.T) {
	r := reader()
	n := r.Read([]byte("name: x\ncolor: y\n"))
	got := ""
	ok := r.Fields(n, map[string]func(*Node){"name": func(n *Node) { got = n.Text }, "colour": nil})
	if want := `f:2:1: color: unknown field "color"; did you mean colour?`; ok || got != "x" || r.Errs.Error() != want {
		t.Errorf("%v, %q\n%v, want\n%s", ok, got, r.Errs, want)
	}
}

// For any input: no panic, a tree within the bounds, positions within the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: &x [1, {b: c}]\nd: *x\n<<: {e: f}", "a: [", "- - - a", "? [a]\n: b", "a: 1\n---\nb", "a: |\n  text\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := reader()
		n := r.Read([]byte(s))
		if n == nil && len(r.Errs) == 0 {
			t.Fatal("nothing was read, and nothing is wrong")
		}
		nodes, breaks := 0, 0
		for _, br := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // of YAML 1.1
			breaks += strings.Count(s, br)
		}
		var walk func(n *Node, depth int)
		walk = func(n *Node, depth int) {
			if nodes++; nodes > 4*r.Bounds.Nodes || depth > r.Bounds.Depth+1 || n.Line > breaks+2 {
				t.Fatalf("node %d, depth %d, line %d", nodes, depth, n.Line)
			}
			for _, i := range n.Items {
				walk(i, depth+1)
			}
			for _, e := range n.Fields {
				walk(e.Value, depth+1)
			}
		}
		if n != nil {
			walk(n, 0)
		}
	})
}
