package decide

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
)

// The pages list every reason for refusing a permit, under its status.
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
	for _, word := range words(t, "reference/proxy.md", "| `X-Weir-Refused` |") {
		if !slices.Contains(weir.Reasons[:], weir.Reason(word)) {
			t.Errorf("docs/reference/proxy.md has a reason %s, which nothing makes", word)
		}
	}
	own := append([]weir.Reason{tooManyPermits, undecided, stillWaiting, tooManyWaiting, tooManyKeys}, weir.Reasons[:]...)
	for _, begin := range []string{"| 429 |", "| 503 |"} {
		for _, word := range words(t, "reference/decisions.md", begin) {
			if !slices.Contains(own, weir.Reason(word)) && word != "max_permits" {
				t.Errorf("docs/reference/decisions.md has a reason %s, which nothing makes", word)
			}
		}
	}
	for _, r := range weir.Reasons {
		status := "429"
		if r.Unavailable() {
			status = "503"
		}
		if !row("reference/decisions.md", "| "+status+" |", string(r)) {
			t.Errorf("docs/reference/decisions.md has no row of %s with %s", status, r)
		}
		if !row("reference/proxy.md", "| `X-Weir-Refused` |", string(r)) {
			t.Errorf("docs/reference/proxy.md does not say that X-Weir-Refused can be %s", r)
		}
	}
}

var word = regexp.MustCompile("`([a-z]+(?:_[a-z]+)*)`")

// words returns the words in code letters in the rows of a page with this beginning.
func words(t *testing.T, page, begin string) (all []string) {
	b, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, begin) {
			for _, m := range word.FindAllStringSubmatch(line, -1) {
				all = append(all, m[1])
			}
		}
	}
	return all
}
