package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/envoy"
)

// secrets returns an environment with a value for each variable in a file.
func secrets(text string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		switch {
		case !strings.Contains(text, name):
			return "", false
		case strings.HasSuffix(name, "_URL"):
			return "https://alerts.example.com/hook", true
		}
		return "0123456789abcdef0123456789abcdef", true
	}
}

// read parses a sample by its kind. A page shows weir.yaml or a part of it, unless the first line names another file.
func read(t *testing.T, s *Sample) error {
	text := []byte(s.Text)
	switch first, _, _ := strings.Cut(s.Text, "\n"); {
	case strings.HasPrefix(first, "# prices.yaml"):
		_, err := price.Parse("prices.yaml", text)
		return err
	case strings.HasPrefix(first, "# story.yaml"):
		_, err := play.Read("story.yaml", text)
		return err
	case strings.HasPrefix(first, "# answers.yaml"):
		file := filepath.Join(t.TempDir(), "answers.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		_, err := answers.Open(file)
		return err
	case strings.HasPrefix(first, "# sidecar.yaml"):
		_, err := objects(s.Text)
		return err
	case strings.HasPrefix(first, "# rules.yaml"):
		_, err := envoy.Parse("rules.yaml", text)
		return err
	case strings.HasPrefix(first, "# envoy.yaml"):
		_, err := filterOf(s.Text)
		return err
	}
	f, err := config.Parse("weir.yaml", []byte(whole(s.Text)), secrets(s.Text))
	if err == nil && len(f.Removed()) > 0 {
		err = f.Removed()
	}
	return err
}

// whole returns a complete weir.yaml with a part.
func whole(text string) string {
	switch {
	case strings.HasPrefix(text, "limits:"):
		return "upstreams:\n  api:\n    url: https://s3.eu-west-1.amazonaws.com\n    preset: s3\n    aws: {service: s3, region: eu-west-1}\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
	case !strings.Contains(text, "upstreams:"):
		return text + "upstreams:\n  api: {url: \"https://example.com\"}\n"
	}
	return text
}

func TestFilesInPagesAreRight(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range all {
		if s.Kind != "yaml" {
			continue
		}
		n++
		if err := read(t, &s); err != nil {
			t.Errorf("%s:%d: %v\n%s", s.File, s.Line, err, s.Text)
		}
	}
	if n < 15 {
		t.Errorf("only %d files were found", n)
	}
	t.Logf("%d files are right", n)
}

// This test must detect invalid files.
func TestAWrongFileIsFound(t *testing.T) {
	for _, text := range []string{"limits:\n  writes: {rate: 3500}\n", "stroe: {redis: \"redis://localhost:6379\"}\n", "# prices.yaml\nmodels: {a: {inptu: 3}}\n", "# answers.yaml\nanswers: 7\n", "limits:\n  writes: {rate: 3500/s, told: requests}\n"} {
		if err := read(t, &Sample{Text: text}); err == nil {
			t.Errorf("nothing is wrong with %q", text)
		} else if fmt.Sprint(err) == "" {
			t.Errorf("nothing is said of %q", text)
		}
	}
}
