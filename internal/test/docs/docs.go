// Package docs finds the programs, files and commands in weir's pages and comments that readers copy. Its tests run each of
// them.
package docs

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A Sample is a block of code.
type Sample struct {
	File string // relative to the root of the module
	Line int    // of its first line
	Kind string // "go", "yaml", "sh" and so on; "text" if not specified
	Text string
}

// Files returns the Markdown pages of the project: in its root, below docs, and in examples/designs.
func Files(root string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, err
	}
	all = append(all, filepath.Join(root, "examples", "designs", "README.md"))
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	return all, err
}

// Pages returns the blocks of README.md, CONTRIBUTING.md and the pages below docs. It omits the runbooks, whose commands
// internal/test/runbooks runs.
func Pages(root string) ([]Sample, error) {
	files, err := Files(root)
	if err != nil {
		return nil, err
	}
	var all []Sample
	for _, f := range files {
		name, err := filepath.Rel(root, f)
		if err != nil {
			return nil, err
		}
		dir := filepath.Dir(name)
		if dir == "." && name != "README.md" && name != "CONTRIBUTING.md" || filepath.Base(dir) == "runbooks" {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, blocks(name, string(data))...)
	}
	return all, nil
}

// blocks returns the texts between fences.
func blocks(file, text string) (all []Sample) {
	var open *Sample
	for i, line := range strings.Split(text, "\n") {
		kind, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			if kind == "" {
				kind = "text"
			}
			open = &Sample{File: file, Line: i + 2, Kind: kind}
		case fence:
			all, open = append(all, *open), nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	return all
}

// Comments returns the programs in comments of a package's source: blocks that parse as Go. It omits tests, whose examples the
// compiler checks.
func Comments(root, dir string) ([]Sample, error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []Sample
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, f, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, group := range parsed.Comments {
			all = append(all, programs(filepath.Join(dir, filepath.Base(f)), fset.Position(group.Pos()).Line, group)...)
		}
	}
	return all, nil
}

func programs(file string, line int, group *ast.CommentGroup) (all []Sample) {
	for _, b := range new(comment.Parser).Parse(group.Text()).Content {
		code, ok := b.(*comment.Code)
		if !ok {
			continue
		}
		s := Sample{File: file, Line: line, Kind: "go", Text: code.Text}
		if f, err := parser.ParseFile(token.NewFileSet(), "", s.Program("p", nil, ""), 0); err == nil && calls(f) {
			all = append(all, s)
		}
	}
	return all
}

// calls reports whether the file calls a function. Without this check an address such as redis://host parses as a label.
func calls(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		_, ok := n.(*ast.CallExpr)
		found = found || ok
		return true
	})
	return found
}

// Program returns a sample as a Go file. It keeps declarations, puts statements into a function, and removes omissions (...).
func (s *Sample) Program(name string, imports []string, declared string) string {
	text := elided(s.Text)
	var b strings.Builder
	b.WriteString("package " + name + "\n")
	if head, rest, ok := strings.Cut(text, "\n)\n"); ok && strings.HasPrefix(text, "import (") {
		b.WriteString(head + "\n")
		text = rest
	} else {
		b.WriteString("import (\n")
	}
	for _, i := range imports {
		b.WriteString("\t" + i + "\n")
	}
	b.WriteString(")\n" + declared)
	if declares(text) {
		b.WriteString("\n" + text)
	} else {
		b.WriteString("\nfunc _() {\n" + text + "}\n")
	}
	return b.String()
}

// declares reports whether the text consists of declarations of functions and types.
func declares(text string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, 0)
	return err == nil && len(f.Decls) > 0
}

func elided(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "..." {
			continue
		}
		line = strings.ReplaceAll(line, "{ ... }", "{ panic(0) }")
		b.WriteString(strings.ReplaceAll(line, ", ...)", ")"))
	}
	return b.String() + "\n"
}
