package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inDir writes files to a directory, and returns that of weir.yaml.
func inDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "weir.yaml")
}

// A file in the directory of `presets` is a preset: the upstream's fields are merged over it, it may change one of weir's presets, and it
// replaces one of the same name.
func TestPresetsOfDirectoryAreUsed(t *testing.T) {
	path := inDir(t, map[string]string{
		"weir.yaml": `
presets: ./mine
upstreams:
  a: {preset: acme, limits: {day: "off", calls: {burst: 5}}}
  b: {preset: small-github}
  c: {preset: ntfy, url: "http://c.example"}
`,
		"mine/acme.yaml":         "# ACME's API.\nurl: https://api.acme.example\nkeys: {key: \"header:X-Key\"}\nlimits:\n  calls: {rate: 10/s, burst: 20, scope: key}\n  day: {amount: 500, every: day}\nretry: {attempts: 7}\n",
		"mine/small-github.yaml": "preset: github\nlimits: {hour: {rate: 1000/h}}\nretry: {attempts: 4}\n",
		"mine/ntfy.yaml":         "preset: ntfy\nlimits: {all: 3/s, requests: \"off\", day: \"off\"}\n",
		"mine/README.md":         "not a preset",
	})
	f, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := f.Upstreams[0], f.Upstreams[1], f.Upstreams[2]
	if a.URL.Host != "api.acme.example" || len(a.Policy.Limits) != 1 || a.Policy.Limits[0].Amount != 10 || a.Policy.Limits[0].Burst != 5 || a.Policy.Limits[0].Scope != "key" || a.Policy.Retry.Attempts != 7 {
		t.Errorf("a: %v %+v, %d attempts", a.URL, a.Policy.Limits, a.Policy.Retry.Attempts)
	}
	for _, l := range b.Policy.Limits {
		if l.Name == "hour" && (l.Amount != 1000 || l.Per != time.Hour) {
			t.Errorf("b: %+v", l)
		}
	}
	if b.URL.Host != "api.github.com" || len(b.Policy.Limits) != 8 || b.Policy.Retry.Attempts != 4 {
		t.Errorf("b: %v, %d limits, %d attempts", b.URL, len(b.Policy.Limits), b.Policy.Retry.Attempts)
	}
	if c.URL.Host != "c.example" || len(c.Policy.Limits) != 1 || c.Policy.Limits[0].Amount != 3 {
		t.Errorf("c: %v %+v", c.URL, c.Policy.Limits)
	}
}

// Mistakes in presets of the directory are reported at their place in the preset's file, others where the file names them.
func TestMistakesInPresetsOfDirectory(t *testing.T) {
	files := map[string]string{
		"mine/rate.yaml":   "url: http://a.example\nlimits:\n  all: {rate: -3/s}\n",
		"mine/field.yaml":  "url: http://a.example\nlimts: {}\n",
		"mine/yaml.yaml":   "url: [http\n",
		"mine/list.yaml":   "- url\n",
		"mine/below.yaml":  "url: http://a.example\npreset: rate\n",
		"mine/nested.yaml": "url: http://a.example\npreset: [github]\n",
		"mine/retry.yaml":  "preset: github\nretry: {attempts: none}\n",
		"empty/x.txt":      "",
	}
	for _, x := range []struct{ yaml, want string }{
		{"presets: mine\nupstreams: {a: {preset: rate}}", "mine/rate.yaml:3:15: upstreams.a.limits.all.rate: "},
		{"presets: mine\nupstreams: {a: {preset: field}}", "mine/field.yaml:2:1: limts: unknown field"},
		{"presets: mine\nupstreams: {a: {preset: yaml}}", "mine/yaml.yaml:"},
		{"presets: mine\nupstreams: {a: {preset: list}}", "mine/list.yaml:1:1: "},
		{"presets: mine\nupstreams: {a: {preset: below}}", "mine/below.yaml:2:9: upstreams.a.preset: unknown preset of weir \"rate\""},
		{"presets: mine\nupstreams: {a: {preset: nested}}", "mine/nested.yaml:2:9: "},
		{"presets: mine\nupstreams: {a: {preset: retry}}", "mine/retry.yaml:2:"},
		{"presets: mine\nupstreams: {a: {preset: rat}}", "weir.yaml:2:25: upstreams.a.preset: unknown preset \"rat\"; did you mean rate?"},
		{"presets: absent\nupstreams: {a: {url: http://a.example}}", "weir.yaml:1:10: presets: "},
		{"presets: empty\nupstreams: {a: {url: http://a.example}}", "contains no presets"},
		{"presets: [a]\nupstreams: {a: {url: http://a.example}}", "weir.yaml:1:10: presets: "},
	} {
		files["weir.yaml"] = x.yaml
		_, err := Load(inDir(t, files), nil)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %s", x.yaml, err, x.want)
		}
	}
}
