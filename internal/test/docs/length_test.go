package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// longest is the maximum number of words of a page, so that a reader can finish it. Longer pages are split.
const longest = 2500

// tables are pages with generated tables or a row for each of many cases. Readers look up rows in them.
var tables = []string{"docs/reference/configuration.md", "docs/reference/metrics.md", "docs/reference/faults.md", "examples/designs/README.md"}

func TestPagesAreShort(t *testing.T) {
	for _, f := range files(t) {
		name, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		if slices.Contains(tables, name) || strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		most := longest
		if name == "README.md" {
			most = 1000
		}
		if n := len(strings.Fields(text(t, f))); n > most {
			t.Errorf("%s has %d words: split or shorten it, %d are allowed", name, n, most)
		}
	}
}
