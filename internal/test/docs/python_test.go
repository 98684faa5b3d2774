package docs

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// Python in pages compiles, if python3 is installed, and its endpoint names an upstream of the page's weir.yaml.
func TestPythonInPagesNamesUpstreamsOfThePage(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := regexp.MustCompile(`endpoint_url="http://[^/"]+/([a-z0-9-]+)"`)
	n := 0
	for _, s := range all {
		if s.Kind != "python" {
			continue
		}
		n++
		if python, err := exec.LookPath("python3"); err == nil {
			c := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.stdin.read())")
			c.Stdin = strings.NewReader(s.Text)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v: %s", s.File, s.Line, err, out)
			}
		}
		for _, m := range endpoint.FindAllStringSubmatch(s.Text, -1) {
			if !hasUpstream(all, s.File, m[1]) {
				t.Errorf("%s:%d: the page has no upstream %s", s.File, s.Line, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no page has Python")
	}
}

// hasUpstream reports whether a weir.yaml of the page has the upstream.
func hasUpstream(all []Sample, file, upstream string) bool {
	for _, s := range all {
		if s.File != file || s.Kind != "yaml" {
			continue
		}
		f, err := config.Parse("weir.yaml", []byte(whole(s.Text)), secrets(s.Text))
		if err != nil {
			continue
		}
		for _, u := range f.Upstreams {
			if u.Name == upstream {
				return true
			}
		}
	}
	return false
}
