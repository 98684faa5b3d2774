package decide

import (
	"os"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
)

// The pages name every reason for which there is no permit, under the status that it is told with.
func TestThePagesNameEveryReason(t *testing.T) {
	row := func(page, begin, reason string) bool {
		b, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, begin) && strings.Contains(line, "`"+reason+"`") {
				return true
			}
		}
		return false
	}
	for _, r := range weir.Reasons {
		status := "429"
		if r.Unavailable() {
			status = "503"
		}
		if !row("decide.md", "| "+status+" |", string(r)) {
			t.Errorf("docs/decide.md has no row of %s with %s", status, r)
		}
		if !row("sidecar.md", "| `X-Weir-Refused` |", string(r)) {
			t.Errorf("docs/sidecar.md does not say that X-Weir-Refused can be %s", r)
		}
	}
}
