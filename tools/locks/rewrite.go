package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// watched are the types of package sync that the detector replaces.
var watched = []string{"Mutex", "RWMutex"}

// rewrite returns the text of a file with the detector's mutexes instead of sync's, nil if it uses none. Line numbers
// do not change.
func rewrite(file string, text []byte, detector string) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	name, spec := importOf(f, "sync")
	if spec == nil {
		return nil, nil
	}
	var edits []edit
	others := false
	at := func(n ast.Node) (from, to int) { return files.Position(n.Pos()).Offset, files.Position(n.End()).Offset }
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == name && x.Obj == nil {
			if slices.Contains(watched, s.Sel.Name) {
				from, to := at(x)
				edits = append(edits, edit{from, to, "lockwatch"})
			} else {
				others = true
			}
		}
		return true
	})
	if len(edits) == 0 {
		return nil, nil
	}
	from, to := at(spec)
	with := "lockwatch " + strconv.Quote(detector)
	switch {
	case !others:
		edits = append(edits, edit{from, to, with})
	case grouped(f, spec):
		edits = append(edits, edit{to, to, "; " + with})
	default:
		edits = append(edits, edit{to, to, "; import " + with})
	}
	return apply(text, edits), nil
}

// importOf returns how a file imports a package, and its name in the file.
func importOf(f *ast.File, path string) (name string, spec *ast.ImportSpec) {
	for _, s := range f.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err != nil || p != path {
			continue
		}
		if s.Name != nil {
			return s.Name.Name, s
		}
		return path, s
	}
	return "", nil
}

// grouped reports whether an import is in a parenthesized group.
func grouped(f *ast.File, spec *ast.ImportSpec) bool {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && slices.Contains(g.Specs, ast.Spec(spec)) {
			return g.Lparen.IsValid()
		}
	}
	return false
}

// An edit replaces the bytes between two offsets.
type edit struct {
	from, to int
	text     string
}

func apply(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	text = slices.Clone(text)
	for _, e := range edits {
		text = slices.Replace(text, e.from, e.to, []byte(e.text)...)
	}
	return text
}
