package classify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	header = regexp.MustCompile(`"([A-Z][A-Za-z]*(?:-[A-Za-z]+)+)"`) // a name in source code
	braces = regexp.MustCompile("([^`{} ]*)\\{([^`{}]*)\\}([^` ]*)") // several names in one, on the page
)

// expanded returns a text with all names that braces stand for.
func expanded(text string) string {
	return braces.ReplaceAllStringFunc(text, func(all string) string {
		var names []string
		m := braces.FindStringSubmatch(all)
		for middle := range strings.SplitSeq(m[2], ",") {
			names = append(names, expanded(m[1]+middle+m[3]))
		}
		return strings.Join(names, " ")
	})
}

func TestDocumentNamesEveryHeader(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/classification.md")
	if err != nil {
		t.Fatal(err)
	}
	hints, err := os.ReadFile(hintsPage)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lower, found := strings.ToLower(expanded(string(page)+string(hints))), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range header.FindAllStringSubmatch(string(source), -1) {
			if strings.HasPrefix(m[1], "Content-") {
				continue
			}
			if found++; !strings.Contains(lower, strings.ToLower(m[1])) {
				t.Errorf("%s: the header %s is neither in docs/reference/classification.md nor in docs/reference/hints.md", file, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d headers in the sources: are they written in another way?", found)
	}
}

func TestDocumentNamesEveryCode(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/classification.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, codes := range []map[string]verdict{awsCodes, vendorCodes} {
		for code := range codes {
			if !strings.Contains(doc, "`"+code+"`") {
				t.Errorf("%s is not in docs/reference/classification.md", code)
			}
		}
	}
	for _, k := range kinds {
		if !strings.Contains(doc, "`"+k.code+"`") {
			t.Errorf("%s is not in docs/reference/classification.md", k.code)
		}
	}
}
