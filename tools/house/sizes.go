package main

import (
	"cmp"
	"fmt"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
)

// core lists the packages whose comments are a contract for all others.
var core = []string{".", "outcome", "clock", "limit", "limit/bucket", "limit/line", "limit/inflight", "limit/pause", "limit/adaptive", "breaker", "retry", "cascade", "fleet", "internal/counter"}

// A size is the number of code and comment lines of a package. Empty lines are not counted.
type size struct {
	path           string
	code, comments int
}

func sizes(w io.Writer, rooms []room) {
	var all []size
	tops := make(map[string]bool)
	var shipped, serving, inCore size
	for _, r := range plain(rooms) {
		s := size{path: r.path}
		for _, f := range r.GoFiles {
			s.add(f)
		}
		all = append(all, s)
		if top, _, _ := strings.Cut(r.path, "/"); top != "." {
			tops[top] = true
		}
		to := &shipped
		if servesTests(r.path) {
			to = &serving
		}
		to.code, to.comments = to.code+s.code, to.comments+s.comments
		if slices.Contains(core, r.path) {
			inCore.code, inCore.comments = inCore.code+s.code, inCore.comments+s.comments
		}
	}
	slices.SortFunc(all, func(a, b size) int { return cmp.Compare(b.code, a.code) })
	for _, s := range all {
		fmt.Fprintf(w, "%6d lines of code, %5d of comments  %s\n", s.code, s.comments, s.path)
	}
	fmt.Fprintf(w, "\n%d lines that ship and %d that serve tests and shows, in %d packages\n", shipped.code, serving.code, len(all))
	fmt.Fprintf(w, "comments: %d%% of all, %d%% of the core\n", share(shipped.code, shipped.comments), share(inCore.code, inCore.comments))
	fmt.Fprintf(w, "folders with Go at the top: %d\n", len(tops))
}

func share(code, comments int) int { return 100 * comments / max(1, code+comments) }

func (s *size) add(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err) // it was read a moment ago
	}
	for line := range strings.Lines(string(data)) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case strings.HasPrefix(line, "//"):
			s.comments++
		default:
			s.code++
		}
	}
}

// decision writes the sizes of the types that take part in a decision.
func decision(w io.Writer, rooms []room) {
	for _, r := range plain(rooms) {
		for _, name := range map[string][]string{".": {"Permit", "Upstream"}, "limit": {"Limiter"}}[r.path] {
			t, ok := r.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				continue
			}
			named := t.Type().(*types.Named)
			fields, exported := 0, 0
			if s, ok := named.Underlying().(*types.Struct); ok {
				fields = s.NumFields()
			}
			for m := range named.Methods() {
				exported += bit(m.Exported())
			}
			fmt.Fprintf(w, "\n%s: %d fields, %d methods, %d of them exported", name, fields, named.NumMethods(), exported)
		}
	}
	fmt.Fprintln(w)
}
