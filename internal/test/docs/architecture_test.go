package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources returns the module's directories with Go files other than tests, and these files, relative to its root. With all set
// it includes test helpers.
func sources(t *testing.T, all bool) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			other := []string{"bench", "tools", "testdata", ".git", ".deps"} // other modules, and directories without Go
			if slices.Contains(other, d.Name()) || !all && (name == "examples" || name == "internal/test" || name == "internal/mutants") {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(name, ".go") && (all || !strings.HasSuffix(name, "_test.go")) {
			dir := filepath.ToSlash(filepath.Dir(name))
			found[dir] = append(found[dir], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The page names each package, by its path or by its last element after its parent's.
func TestTheArchitecturePageNamesEveryPackage(t *testing.T) {
	page := text(t, filepath.Join(root, "ARCHITECTURE.md"))
	_, page, _ = strings.Cut(page, "## The packages")
	page, _, _ = strings.Cut(page, "\n## ")
	for dir := range sources(t, false) {
		last := dir[strings.LastIndex(dir, "/")+1:]
		if dir != "." && !strings.Contains(page, "`"+dir+"`") && !strings.Contains(page, "`"+last+"`") {
			t.Errorf("%s is not among the packages of ARCHITECTURE.md", dir)
		}
	}
}

// reference matches a file on the page, and the name to find in it.
var reference = regexp.MustCompile("`([\\w./]+\\.go)`(?:: `(\\w+)`)?")

// The files and names on the page exist.
func TestTheArchitecturePageNamesFilesThatAreThere(t *testing.T) {
	byName := make(map[string][]string)
	for _, files := range sources(t, true) {
		for _, f := range files {
			byName[f] = append(byName[f], f)
			if base := filepath.Base(f); base != f {
				byName[base] = append(byName[base], f)
			}
		}
	}
	all := reference.FindAllStringSubmatch(text(t, filepath.Join(root, "ARCHITECTURE.md")), -1)
	for _, m := range all {
		if len(byName[m[1]]) == 0 {
			t.Errorf("ARCHITECTURE.md: there is no %s", m[1])
			continue
		}
		word := regexp.MustCompile(`\b` + m[2] + `\b`)
		if !slices.ContainsFunc(byName[m[1]], func(f string) bool { return word.MatchString(text(t, filepath.Join(root, f))) }) {
			t.Errorf("ARCHITECTURE.md: %s has no %s", m[1], m[2])
		}
	}
	for _, f := range sources(t, false)["."] {
		if f != "doc.go" && !slices.ContainsFunc(all, func(m []string) bool { return m[1] == f }) {
			t.Errorf("ARCHITECTURE.md does not say what %s is for", f)
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d files are named", len(all))
	}
}
