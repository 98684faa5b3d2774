package classify

import (
	"os"
	"strings"
	"testing"
)

func TestDocumentNamesEveryCode(t *testing.T) {
	b, err := os.ReadFile("../../docs/classify.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, codes := range []map[string]verdict{awsCodes, vendorCodes} {
		for code := range codes {
			if !strings.Contains(doc, "`"+code+"`") {
				t.Errorf("%s is not in docs/classify.md", code)
			}
		}
	}
	for _, k := range kinds {
		if !strings.Contains(doc, "`"+k.code+"`") {
			t.Errorf("%s is not in docs/classify.md", k.code)
		}
	}
}
