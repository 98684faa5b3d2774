// Command campaigns lists the tests that try more if WEIR_LONG is set: the tests that use internal/test/campaign
// directly or indirectly. It prints them, and their packages, as arguments of go test.
//
//	cd tools && go run ./campaigns
//
// Uses are followed by name and not by type, so the list may contain too many tests. Uses of methods are followed
// within a package only, uses of functions also into other packages.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/seed1158cd35/weir"

// campaign is the package that determines how long a test tries.
const campaign = "internal/test/campaign"

func main() {
	without := flag.String("without", "", "`directories` whose tests are left out, with commas between")
	flag.Parse()
	args, err := arguments(os.DirFS(".."), strings.Split(*without, ",")...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaigns:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(args, " "))
}

// A name is declared in a directory of the tree. The name of a method begins with a dot, for any type.
type name struct{ dir, name string }

// A tree contains the names that each name uses, and the names of tests.
type tree struct {
	uses  map[name][]name
	tests []name
}

// arguments returns the arguments of go test for the tests that use campaign, in all directories except some.
func arguments(files fs.FS, without ...string) ([]string, error) {
	t := tree{uses: map[name][]name{}}
	if err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || file == campaign || moduleOfItsOwn(files, file)):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		return t.read(files, file)
	}); err != nil {
		return nil, err
	}
	tests, packages := map[string]bool{}, map[string]bool{}
	comes := t.comes()
	for _, test := range t.tests {
		if comes[test] && !slices.Contains(without, test.dir) {
			tests[test.name], packages["./"+test.dir] = true, true
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test comes to %s", campaign)
	}
	run := "^(" + strings.Join(slices.Sorted(maps.Keys(tests)), "|") + ")$"
	return append([]string{"-run", run}, slices.Sorted(maps.Keys(packages))...), nil
}

func moduleOfItsOwn(files fs.FS, dir string) bool {
	_, err := fs.Stat(files, path.Join(dir, "go.mod"))
	return err == nil
}

// read adds the declarations of a file.
func (t *tree) read(files fs.FS, file string) error {
	source, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, imports := path.Dir(file), importsOf(parsed)
	for _, d := range parsed.Decls {
		uses := usedIn(d, dir, imports)
		for _, n := range namesOf(d, dir) {
			t.uses[n] = append(t.uses[n], uses...)
			if strings.HasSuffix(file, "_test.go") && strings.HasPrefix(n.name, "Test") && n.name != "TestMain" {
				t.tests = append(t.tests, n)
			}
		}
	}
	return nil
}

// importsOf returns the directories of the tree's packages that a file imports, by their names in the file.
func importsOf(f *ast.File) map[string]string {
	all := map[string]string{}
	for _, i := range f.Imports {
		from, _ := strconv.Unquote(i.Path.Value)
		dir, ours := strings.CutPrefix(from, module+"/")
		if from == module {
			dir, ours = ".", true
		}
		if !ours {
			continue
		}
		as := path.Base(from)
		if i.Name != nil {
			as = i.Name.Name
		}
		all[as] = dir
	}
	return all
}

func namesOf(d ast.Decl, dir string) (all []name) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []name{{dir, "." + d.Name.Name}}
		}
		return []name{{dir, d.Name.Name}}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					all = append(all, name{dir, n.Name})
				}
			}
		}
	}
	return all
}

func usedIn(d ast.Node, dir string, imports map[string]string) (all []name) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				all = append(all, name{imports[x.Name], n.Sel.Name})
				return false
			}
			all = append(all, name{dir, "." + n.Sel.Name})
			all = append(all, usedIn(n.X, dir, imports)...)
			return false
		case *ast.Ident:
			all = append(all, name{dir, n.Name})
		}
		return true
	})
	return all
}

// comes returns the names that use campaign directly or indirectly.
func (t *tree) comes() map[name]bool {
	usedBy := map[name][]name{}
	var reached []name
	seen := map[name]bool{}
	for n, uses := range t.uses {
		for _, u := range uses {
			usedBy[u] = append(usedBy[u], n)
			if u.dir == campaign && !seen[n] {
				seen[n] = true
				reached = append(reached, n)
			}
		}
	}
	for len(reached) > 0 {
		n := reached[0]
		reached = reached[1:]
		for _, by := range usedBy[n] {
			if !seen[by] {
				seen[by] = true
				reached = append(reached, by)
			}
		}
	}
	return seen
}
