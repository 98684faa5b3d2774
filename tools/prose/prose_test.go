package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every line is a sentence and the number of findings in it.
var judged = []struct {
	text string
	want int
}{
	{"What is refused waits for the next call.", 1},
	{"What you need is a file with one limit.", 0},
	{"What happens when the store is away?", 0},
	{"A caller that disconnects early is charged the estimated cost.", 0},
	{"The breaker hears of it, and nobody is told.", 3},
	{"The RFC says that the header is a number.", 0},
	{"The file says that the limit is a number.", 1},
	{"Calls go on with a client of their own.", 2},
	{"Some of which wait, of which most are refused.", 1},
	{"The client has to set a timeout first.", 0},
	{"Calls wait for so long as the store has it.", 2},
	{"Run `nobody hears` to see which calls wait.", 0},
}

func TestFindingsOfSentences(t *testing.T) {
	for _, j := range judged {
		all := sentences(j.text)
		if len(all) != 1 {
			t.Fatalf("%q: %d sentences", j.text, len(all))
		}
		if got := findings(all[0].text); len(got) != j.want {
			t.Errorf("%q: %v, want %d findings", j.text, got, j.want)
		}
	}
}

// The check is calibrated on Go's standard library: plain English must pass.
func TestStandardLibraryPasses(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all count
	for _, dir := range []string{"net/http", "os", "time", "context", "sync", "encoding/json"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", dir, err, len(files))
		}
		for _, f := range files {
			c, err := measure(f)
			if err != nil {
				t.Fatal(err)
			}
			all.words, all.findings = all.words+c.words, all.findings+c.findings
		}
	}
	if all.words < 50_000 || all.rate() > 2 {
		t.Errorf("%d words, %.1f findings per 1,000; want at most 2", all.words, all.rate())
	}
	t.Logf("%d words, %.1f findings per 1,000", all.words, all.rate())
}

func TestPageIsMeasuredWithoutCodeAndHeadings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "# What is refused waits\n\nA limit has a rate. It is per second here.\n\n```\nnobody hears what is said here\n```\n\n" +
		"- An item that nobody reads is one.\n\n| short cell of nobody | a cell of eight words or more counts here |\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := measure(path)
	if err != nil || c.sentences != 4 || c.findings != 1 {
		t.Errorf("%+v, %v; want 4 sentences with 1 finding", c, err)
	}
	if report(path, c, 4) != true {
		t.Error("a short file with one finding does not pass")
	}
}
