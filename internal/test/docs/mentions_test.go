package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// files returns the paths of all pages.
func files(t *testing.T) []string {
	t.Helper()
	all, err := Files(root)
	if err != nil || len(all) < 50 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of a page's headings.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	n := 0
	for _, f := range files(t) {
		for _, m := range link.FindAllStringSubmatch(text(t, f), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			to := filepath.Join(filepath.Dir(f), target)
			if target == "" {
				to = f
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: (%s) leads nowhere", f, m[1])
			} else if anchor != "" && !anchors(text(t, to))[anchor] {
				t.Errorf("%s: (%s): %s has no such heading", f, m[1], to)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links were found", n)
	}
}

// Pages and headings that programs name in messages or links exist.
func TestPagesThatProgramsNameExist(t *testing.T) {
	page := regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(#[a-z0-9-]+)?`)
	n := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "cmd") && path != root:
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for _, m := range page.FindAllString(text(t, path), -1) {
			n++
			file, anchor, _ := strings.Cut(m, "#")
			if to := filepath.Join(root, file); !exists(to) {
				t.Errorf("%s names %s, which does not exist", path, m)
			} else if anchor != "" && !anchors(text(t, to))[anchor] {
				t.Errorf("%s names %s, which has no such heading", path, m)
			}
		}
		return nil
	})
	if err != nil || n < 30 {
		t.Errorf("%d pages are named: %v", n, err)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

var (
	verb   = regexp.MustCompile("(?m)(?:`|^    )make ([a-z-]+)")
	target = regexp.MustCompile(`(?m)^([a-z-]+):`)
	goTest = regexp.MustCompile("`(?:[A-Z_]+=\\S+ )*go test ([^`]+)`")
	flagOf = regexp.MustCompile(`-(?:run|bench) '?([\w|^$]+)'?`)
	folder = regexp.MustCompile(`\./[\w/]*`)
	tested = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
)

func TestVerbsAreInTheMakefile(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range target.FindAllStringSubmatch(text(t, filepath.Join(root, "Makefile")), -1) {
		known[m[1]] = true
	}
	for _, f := range files(t) {
		for _, m := range verb.FindAllStringSubmatch(text(t, f), -1) {
			if !known[m[1]] {
				t.Errorf("%s: there is no make %s", f, m[1])
			}
		}
	}
}

// functions returns the tests and benchmarks of a package.
func functions(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range all {
		for _, m := range tested.FindAllStringSubmatch(text(t, f), -1) {
			b.WriteString(m[1] + "\n")
		}
	}
	return b.String()
}

// Tests and benchmarks that pages name as the source of a figure exist.
func TestMeasurementsOfPagesExist(t *testing.T) {
	n := 0
	for _, f := range files(t) {
		if filepath.Base(f) == "CHANGELOG.md" { // describes the past
			continue
		}
		for _, m := range goTest.FindAllStringSubmatch(text(t, f), -1) {
			dir := folder.FindString(m[1])
			if dir == "" || dir == "./" {
				continue
			}
			n++
			has := functions(t, dir)
			if has == "" {
				t.Errorf("%s: go test %s: there are no tests in %s", f, m[1], dir)
				continue
			}
			matched := false
			for _, p := range flagOf.FindAllStringSubmatch(m[1], -1) {
				matched = matched || regexp.MustCompile(p[1]).MatchString(has)
			}
			if !matched && flagOf.MatchString(m[1]) {
				t.Errorf("%s: go test %s: nothing in %s has such a name", f, m[1], dir)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d measurements were found", n)
	}
}
