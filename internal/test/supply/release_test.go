//go:build linux

package supply

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// released builds a release for one architecture and returns its files.
func released(t *testing.T) map[string][]byte {
	t.Helper()
	flags := release(t)
	dir := filepath.Join(t.TempDir(), "release")
	c := exec.Command("scripts/release", dir)
	c.Dir = root
	c.Env = append(os.Environ(), "RELEASE="+strings.Join(flags[:4], " ")+" '"+flags[4]+"' "+flags[5], "ARCHES=amd64", "VERSION=v7.8.9", "SOURCE_DATE_EPOCH=1700000000")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Two releases of the same sources are identical. The checksums match the files, the bill of materials matches the program, and
// the package has its files in the expected places.
func TestARelease(t *testing.T) {
	first, second := released(t), released(t)
	const program, deb = "weir-linux-amd64", "weir_7.8.9_amd64.deb"
	for _, name := range []string{program, "weir-darwin-amd64", "weir-image-linux-amd64", program + ".cdx.json", deb, "SHA256SUMS"} {
		if len(first[name]) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	if len(first) != 6 || len(second) != 6 {
		t.Errorf("%d and %d files", len(first), len(second))
	}
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s: two releases differ, with %d and %d bytes", name, len(first[name]), len(second[name]))
		}
		if sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name); name != "SHA256SUMS" && !bytes.Contains(first["SHA256SUMS"], []byte(sum)) {
			t.Errorf("SHA256SUMS has no %s", sum)
		}
	}
	billOf(t, first[program+".cdx.json"], first[program])
	packageOf(t, first[deb])
}

// billOf compares a bill of materials with go's list of modules.
func billOf(t *testing.T, text, program []byte) {
	t.Helper()
	type component struct {
		Name, Version, PURL string
		Hashes              []struct{ Alg, Content string }
	}
	var bom struct {
		BomFormat, SpecVersion, SerialNumber string
		Metadata                             struct {
			Timestamp string
			Component component
		}
		Components []component
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BomFormat != "CycloneDX" || bom.SpecVersion != "1.6" || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("it begins with %s %s %s %s", bom.BomFormat, bom.SpecVersion, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	self := bom.Metadata.Component
	if self.Version != "7.8.9" || len(self.Hashes) != 1 || self.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(program)) {
		t.Errorf("it is of %+v", self)
	}
	has := make(map[string]bool)
	for _, c := range bom.Components {
		has[c.Name+" "+c.Version] = true
		if c.Version == "" || !strings.HasSuffix(c.PURL, "@"+c.Version) {
			t.Errorf("a part has no version: %+v", c)
		}
	}
	c := exec.Command("go", append(append([]string{"list", "-deps"}, release(t)[:2]...), "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/weir")...)
	c.Dir, c.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			modules[line] = true
			if !has[line] {
				t.Errorf("it has no %s", line)
				has[line] = true
			}
		}
	}
	if len(bom.Components) != len(modules)+1 { // plus the standard library
		t.Errorf("it has %d parts, and go names %d modules", len(bom.Components), len(modules))
	}
}

// packageOf checks a Debian package with dpkg.
func packageOf(t *testing.T, deb []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.deb")
	if err := os.WriteFile(file, deb, 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) string {
		out, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg-deb %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	contents := ask("-c", file)
	for path, mode := range map[string]string{
		"./usr/bin/weir": "-rwxr-xr-x", "./lib/systemd/system/weir.service": "-rw-r--r--", "./etc/weir/weir.yaml": "-rw-r--r--",
		"./usr/share/doc/weir/copyright": "-rw-r--r--", "./usr/share/doc/weir/changelog.gz": "-rw-r--r--", "./usr/share/lintian/overrides/weir": "-rw-r--r--",
		"./usr/share/man/man1/weir.1.gz": "-rw-r--r--", "./usr/share/bash-completion/completions/weir": "-rw-r--r--",
		"./usr/share/zsh/vendor-completions/_weir": "-rw-r--r--", "./usr/share/fish/vendor_completions.d/weir.fish": "-rw-r--r--",
	} {
		found := false
		for line := range strings.Lines(contents) {
			f := strings.Fields(line)
			found = found || len(f) == 6 && f[5] == path && f[0] == mode && f[1] == "root/root"
		}
		if !found {
			t.Errorf("the package has no %s with %s:\n%s", path, mode, contents)
		}
	}
	for field, want := range map[string]string{"Package": "weir", "Version": "7.8.9", "Architecture": "amd64", "Section": "net", "Priority": "optional"} {
		if got := strings.TrimSpace(ask("-f", file, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(ask("-f", file, "Description")), "\n") {
		if len(line) > 80 || i == 0 && (len(line) > 60 || strings.HasSuffix(line, ".") || strings.HasPrefix(line, "weir")) {
			t.Errorf("lintian would not like the line %q of the description", line)
		}
	}
	if got := strings.TrimSpace(ask("-I", file, "conffiles")); got != "/etc/weir/weir.yaml" {
		t.Errorf("what users change is %q", got)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if text := ask("-I", file, script); !strings.HasPrefix(text, "#!/bin/sh\n") || !strings.Contains(text, "set -e") {
			t.Errorf("%s: %s", script, text)
		}
	}
}
