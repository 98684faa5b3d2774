package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/seed1158cd35/weir/internal/cli"
)

// loaders are elements and attributes that load something, run scripts or link to other pages.
var loaders = []string{"script", "link", "img", "image", "iframe", "object", "embed", "use", "base", "form", "src", "srcset", "xlink:href", "action", "data"}

// A checkedPage is a page that a test has parsed.
type checkedPage struct {
	text     string         // of the page, without its style sheet
	elements map[string]int // by name
}

// simPageOf runs weir sim --html, and checks what holds for each page: it is well formed, has a title and headings, loads nothing,
// has no script, labels its tables and pictures, and is the same for the same seed.
func simPageOf(t *testing.T, files map[string]string, args string) *checkedPage {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var pages [2][]byte
	for i := range pages {
		var said strings.Builder
		err := run(t.Context(), world{args: append([]string{"sim", "-html", "page.html"}, strings.Fields(args)...), out: &said, err: &said, env: noEnv})
		if status := cli.Exit("weir", err, &said); status > 1 {
			t.Fatalf("status %d: %s", status, said.String())
		}
		if pages[i], err = os.ReadFile("page.html"); err != nil {
			t.Fatal(err)
		}
	}
	if string(pages[0]) != string(pages[1]) {
		t.Error("two runs with the same seed write different pages")
	}
	return checkPage(t, string(pages[0]))
}

func checkPage(t *testing.T, text string) *checkedPage {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := &checkedPage{elements: make(map[string]int)}
	ids := make(map[string]bool)
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Parent.Data != "style":
			p.text += n.Data
		case n.Type == html.ElementNode:
			p.elements[n.Data]++
			p.check(t, n, ids)
		}
	}
	for n := range root.Descendants() {
		if to := attribute(n, "href"); to != "" && !ids[strings.TrimPrefix(to, "#")] {
			t.Errorf("a link leads to %s", to)
		}
		if by := attribute(n, "aria-labelledby"); by != "" && !ids[by] {
			t.Errorf("no element has the id %s", by)
		}
	}
	if p.elements["title"] != 1 || p.elements["h1"] != 1 || p.elements["h2"] == 0 || p.elements["main"] != 1 {
		t.Errorf("titles and headings: %v", p.elements)
	}
	if style := text[:strings.Index(text, "</style>")]; strings.Contains(style, "url(") || strings.Contains(style, "@import") || !strings.Contains(style, "prefers-color-scheme: dark") {
		t.Error("the style sheet loads something, or has no dark colors")
	}
	return p
}

// check checks an element.
func (p *checkedPage) check(t *testing.T, n *html.Node, ids map[string]bool) {
	t.Helper()
	if slices.Contains(loaders, n.Data) {
		t.Errorf("the page has an element %s", n.Data)
	}
	for _, a := range n.Attr {
		if slices.Contains(loaders, a.Key) || strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
			t.Errorf("an element %s has the attribute %s=%q", n.Data, a.Key, a.Val)
		}
		if a.Key == "id" {
			if ids[a.Val] {
				t.Errorf("two elements have the id %s", a.Val)
			}
			ids[a.Val] = true
		}
	}
	switch {
	case n.Data == "svg" && (attribute(n, "role") != "img" || attribute(n, "aria-label") == ""):
		t.Error("a picture has no text")
	case n.Data == "th" && attribute(n, "scope") == "":
		t.Error("a header of a table has no scope")
	case n.Data == "thead":
		if columns, wide := len(slices.Collect(n.FirstChild.ChildNodes())), attribute(n.Parent, "class") == "wide"; wide != (columns > 4) {
			t.Errorf("a table of %d columns: wide is %v", columns, wide)
		}
	case n.Data == "figure" && n.FirstChild.Data != "figcaption":
		t.Error("a figure has no caption")
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func (p *checkedPage) want(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			t.Errorf("%q is missing in\n%s", text, p.text)
		}
	}
}

// hostile is a text that changes a page if it is not escaped.
const hostile = `</title></style><script>alert(1)</script><b x='"&lt;`

// The page has each story with its verdict, both pictures and all figures.
func TestSimPageShowsEachStory(t *testing.T) {
	p := simPageOf(t, map[string]string{"weir.yaml": simConfig}, "-upstream api")
	p.want(t, "weir sim: weir.yaml", "Not played: listen", "Upstream api", "Assumed: ", "twice the limit all",
		"retry storm", "breaker flap", "cold cache", "lease expiry", "noisy tenant", "store outage", "Without weir: stuck", "With the file: recovers in",
		"calls answered", "attempts sent", "attempts refused by weir", "99% of calls answered again after", "stall from 15s to 25s", "slow 3x", "flush at 15s")
	if p.elements["figure"] != 11 || p.elements["svg"] != 11 || p.elements["h3"] != 6 { // the fleet has no second picture
		t.Errorf("got %v", p.elements)
	}
}

// Texts of files and file names cannot change the page. Expectations that do not hold are on top.
func TestSimPageEscapesTexts(t *testing.T) {
	story := strings.Replace(simStory, "stall at noon", fmt.Sprintf("'%s'", strings.ReplaceAll(hostile, "'", "''")), 1) + "expect: {answered: '> 99%'}\n"
	const name = "a&amp;<u>b.yaml"
	p := simPageOf(t, map[string]string{name: simConfig, "story.yaml": story}, "-config "+name+" story.yaml")
	p.want(t, hostile, name, "An expectation does not hold", "does not hold", "> 99%", "weir sim --config "+name+" --upstream api --seed 1 STORY.yaml")
	if p.elements["u"]+p.elements["b"] != 2 { // the names of the ways
		t.Errorf("got %v", p.elements)
	}
}

func TestSimPageShowsReplay(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, `{"time":"2026-11-30T12:00:%02dZ","msg":"attempt","upstream":%q,"attempt":1,"class":"ok","took":0.05,"key":%q}`+"\n",
			i/2, []string{"api", hostile}[i%2], "tenant="+hostile)
	}
	config := strings.Replace(simConfig, "rate: 30/s, burst: 10", "rate: 1/s, burst: 1, scope: tenant", 1)
	config = strings.Replace(config, "max_wait", `keys: {tenant: "header:X"}, max_wait`, 1)
	p := simPageOf(t, map[string]string{"weir.yaml": config, "weir.log": log.String(), "new.yaml": simConfig}, "-replay weir.log -against new.yaml")
	p.want(t, "50 calls in 100 lines", "match no upstream: "+hostile[:20], "tenant="+hostile[:20], "recorded", "weir.yaml", "new.yaml", "wait p99")
	if p.elements["table"] != 2 {
		t.Errorf("got %v", p.elements)
	}
}

// The page has the curves of both files. An interrupted search writes the points that it has found.
func TestSimPageShowsSearch(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"weir.yaml", "new.yaml"} {
		if err := os.WriteFile(name, []byte(simConfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	args := strings.Fields("sim -upstream api -search -against new.yaml -html page.html")
	err := run(ctx, world{args: args, out: new(strings.Builder), err: &onText{text: "api: searched 3 of 18", then: cancel}, env: noEnv})
	text, readErr := os.ReadFile("page.html")
	if err == nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	p := checkPage(t, string(text))
	p.want(t, "The command was interrupted", "Shortest stall", "without weir", "new.yaml", "97%", "not finished", "story: a stall of")
	if p.elements["svg"] != 1 || p.elements["circle"] == 0 || p.elements["g"] != 3 {
		t.Errorf("got %v", p.elements)
	}
}

func TestSimPageRefusesNameOfAnotherFile(t *testing.T) {
	files := map[string]string{"weir.yaml": simConfig, "story.yaml": simStory}
	for args, want := range map[string]string{
		"-config weir.yaml -html weir.yaml story.yaml":      "want a file name that ends with .html",
		"-config weir.yaml -html gone/page.html story.yaml": "no such file",
	} {
		if status, _, said := simulate(t, t.Context(), files, args); status != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: status %d, %s", args, status, said)
		}
	}
}
