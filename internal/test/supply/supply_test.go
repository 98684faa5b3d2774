package supply

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

const root = "../../.."

// licences are the allowed licenses of parts of the binary, by characteristic words.
var licences = map[string][]string{
	"Apache-2.0": {"Apache License", "Version 2.0"},
	"MIT":        {"Permission is hereby granted, free of charge", "without restriction"},
	"ISC":        {"Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted", "provided that the above copyright notice"},
	"BSD":        {"Redistribution and use in source and binary forms", "must retain the above copyright notice"},
}

// licence returns the license of a text, or "".
func licence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for name, words := range licences {
		all := true
		for _, w := range words {
			all = all && strings.Contains(text, w)
		}
		if all {
			return name
		}
	}
	return ""
}

// Every module in the binary has a license that permits distribution.
func TestLicences(t *testing.T) {
	c := exec.Command("go", "list", "-deps", "-tags", "image", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./cmd/weir")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || seen[path] {
			continue
		}
		seen[path] = true
		if kind := licenceOf(t, dir); kind == "" {
			t.Errorf("%s: its licence is none of those that are known to be fit; look at it and at its file in %s", path, filepath.Base(dir))
		}
	}
	if len(seen) < 20 {
		t.Errorf("go list names %d modules", len(seen))
	}
}

// bin/weir contains no code that only tests and demonstrations need, such as the simulated providers.
func TestNothingOfTestsShips(t *testing.T) {
	c := exec.Command("go", "list", "-deps", "./cmd/weir")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for line := range strings.Lines(string(out)) {
		name, ours := strings.CutPrefix(strings.TrimSpace(line), "github.com/seed1158cd35/weir/")
		if ours {
			own++
		}
		if name == "testing" || ours && (strings.HasPrefix(name, "internal/test/") || strings.HasPrefix(name, "cmd/weir-demo") || strings.HasPrefix(name, "examples")) {
			t.Errorf("%s is a part of bin/weir", name)
		}
	}
	if own < 40 {
		t.Errorf("go list names %d packages of weir", own)
	}
}

func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if !strings.HasPrefix(name, "licen") && !strings.HasPrefix(name, "copying") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if kind := licence(string(text)); kind != "" {
			return kind
		}
	}
	return ""
}

func TestALicenceThatIsNotFitIsNotTakenForAnother(t *testing.T) {
	for _, text := range []string{"", "GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "Business Source License 1.1", "Server Side Public License"} {
		if kind := licence(text); kind != "" {
			t.Errorf("%q is taken for %s", text, kind)
		}
	}
}

// floating matches a version that may change.
var floating = regexp.MustCompile(`@(latest|master|main|HEAD)\b`)

// Everything that scripts and the Makefile download has a version in the tree. Modules have it in go.mod and a checksum in
// go.sum, programs for tests in a package-lock.json.
func TestVersionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "scripts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, filepath.Join(root, "Makefile"), filepath.Join(root, ".ci", "run")) {
		if info, err := os.Stat(f); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if at := floating.Find(text); at != nil {
			t.Errorf("%s fetches %s", f, at)
		}
	}
	for _, dir := range []string{".", "bench", "tools", "examples/messages", "internal/test/browser"} {
		text, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^replace .*=> [^.]`).Match(text) {
			t.Errorf("%s/go.mod puts something else in a module's place", dir)
		}
	}
	for _, dir := range []string{"npm", "fauxqs", "grpcjs", "clients"} {
		if _, err := os.Stat(filepath.Join(root, "scripts", dir, "package-lock.json")); err != nil {
			t.Error(err)
		}
	}
}

// The tree's modules use the same versions of common dependencies. Another version would be built a second time with everything
// that depends on it.
func TestModulesAgree(t *testing.T) {
	versions := func(dir string) map[string]string {
		text, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for _, m := range regexp.MustCompile(`(?m)^(?:require )?\t?([\w./-]+\.[\w./-]+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	ours := versions(".")
	if len(ours) < 20 {
		t.Fatalf("go.mod names %d modules", len(ours))
	}
	for _, dir := range []string{"bench", "examples/messages", "internal/test/browser"} {
		common := 0
		for path, version := range versions(dir) {
			if want := ours[path]; want != "" {
				common++
				if version != want {
					t.Errorf("%s/go.mod has %s %s, go.mod %s", dir, path, version, want)
				}
			}
		}
		if common == 0 {
			t.Errorf("%s/go.mod has nothing that go.mod has", dir)
		}
	}
}

// release returns the Makefile's flags for releases.
func release(t *testing.T) (flags []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^RELEASE := (-tags \w+) (-trimpath) (-ldflags) '([^']+)' (-pgo=\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Makefile says nothing of a release")
	}
	tags, tag, _ := strings.Cut(string(m[1]), " ")
	return []string{tags, tag, string(m[2]), string(m[3]), string(m[4]), string(m[5])}
}

// A package that looks up methods by name at run time, as templates do, keeps all methods of all types in the binary, which
// grows by half. cobra imports text/template, but the linker removes its execution as long as weir sets no template.
func TestTheReleaseIsSmall(t *testing.T) {
	c := exec.Command("go", append(append([]string{"list", "-deps"}, release(t)[:2]...), "./cmd/weir")...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if name == "html/template" || strings.HasSuffix(name, "/reflect2") {
			t.Errorf("bin/weir is built from %s", name)
		}
	}
	file := filepath.Join(t.TempDir(), "weir")
	c = exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", file}, append(release(t), "./cmd/weir")...)...)
	c.Dir, c.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(program, []byte("text/template.(*state)")) {
		t.Error("bin/weir executes templates: weir or a package that it uses calls text/template")
	}
	if info.Size() > 513e5 {
		t.Errorf("it is %.2f MB, want 51.3 at most: docs/adr/0012-binary-size.md says what weighs what", float64(info.Size())/1e6)
	}
}

// The same sources produce the same bytes in any directory.
func TestTheBuildIsReproducible(t *testing.T) {
	var built [2][]byte
	for i, name := range []string{"here", "elsewhere/and/deeper"} {
		dir := filepath.Join(t.TempDir(), name)
		copyTree(t, root, dir)
		c := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", "weir"}, append(release(t), "./cmd/weir")...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(filepath.Join(dir, "weir"))
		if err != nil {
			t.Fatal(err)
		}
		built[i] = b
		if bytes.Contains(b, []byte(dir)) {
			t.Errorf("the binary names the directory in which it was built")
		}
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Errorf("two builds of the same sources differ: %d and %d bytes", len(built[0]), len(built[1]))
	}
}

// copyTree copies the files that a build needs.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); path != from && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules" || name == "testdata") {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if !e.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
