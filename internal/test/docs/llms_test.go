package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// llms.txt links to pages that exist.
func TestLinksOfLLMsFileExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "llms.txt"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`(?m)^- \[[^]]+\]\(([^)]+)\)$`).FindAllSubmatch(text, -1)
	if len(links) < 40 {
		t.Errorf("got %d links, want all pages of docs", len(links))
	}
	for _, l := range links {
		if _, err := os.Stat(filepath.Join(root, string(l[1]))); err != nil {
			t.Error(err)
		}
	}
}
