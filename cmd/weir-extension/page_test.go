package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// blockOf returns the page's block of a kind after the heading of the extension.
func blockOf(t *testing.T, kind string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/run-on-lambda.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The extension\n")
	m := regexp.MustCompile("(?s)\n```" + kind + "\n(.*?)```").FindStringSubmatch(section)
	if m == nil {
		t.Fatalf("the page has no %s", kind)
	}
	return m[1]
}

// The page's function calls the extension, which runs with the page's file, during an invocation. Only the address and the
// store differ.
func TestFunctionOfPageAsksExtension(t *testing.T) {
	file := blockOf(t, "yaml")
	for old, with := range map[string]string{"127.0.0.1:8082": "127.0.0.1:0", "{dynamodb: {table: weir}}": "{memory: true}"} {
		if !strings.Contains(file, old) {
			t.Fatalf("the page's file has no %s\n%s", old, file)
		}
		file = strings.ReplaceAll(file, old, with)
	}
	l := newLambda(t)
	x := begin(t, l, file, nil, nil)
	l.begins("one", time.Now().Add(soon))
	function := strings.ReplaceAll(blockOf(t, "python"), "127.0.0.1:8082", x.addr) + "\nprint(handler(None, None))\n"
	path := filepath.Join(t.TempDir(), "function.py")
	writeFile(t, path, function)
	if out, err := exec.CommandContext(t.Context(), "python3", path).CombinedOutput(); err != nil || string(out) != "200\n" {
		t.Errorf("%v\n%s", err, out)
	}
	l.done("one")
	l.begins("two", time.Now().Add(soon)) // it has returned its units and requested the next event
}
