package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
)

// fewestWords is the length from which a sentence, and fewestCell that from which a cell of a table, is prose.
const (
	fewestWords = 4
	fewestCell  = 8
)

var (
	code       = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	address    = regexp.MustCompile(`https?://\S+`)
	shortened  = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs|cf|approx|No)\.`)
	decimal    = regexp.MustCompile(`(\d)\.(\d)`)
	ends       = regexp.MustCompile("[.!?]\\s+[\"'(A-Z0-9`*]")
	word       = regexp.MustCompile(`[A-Za-z0-9·'’/-]+`)
	listItem   = regexp.MustCompile(`^([-*+]|\d+\.) `)
	codeMarker = regexp.MustCompile("^(```|~~~)")
)

// A sentence has at least fewestWords words; code in it is replaced by X.
type sentence struct {
	text  string
	words int
}

// sentences splits a paragraph.
func sentences(text string) (all []sentence) {
	text = code.ReplaceAllString(text, "X")
	text = link.ReplaceAllString(text, "$1")
	text = address.ReplaceAllString(text, "X")
	text = shortened.ReplaceAllString(text, "$1")
	text = decimal.ReplaceAllString(text, "$1·$2")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "**", "")), " ")
	for text != "" {
		s := text
		if m := ends.FindStringIndex(text); m != nil {
			s = text[:m[0]+1]
		}
		text = strings.TrimSpace(text[len(s):])
		if n := len(word.FindAllString(s, -1)); n >= fewestWords {
			all = append(all, sentence{s, n})
		}
	}
	return all
}

// markdown returns the paragraphs, list items and longer table cells of a page, without code blocks and headings.
func markdown(path string) ([]string, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []string
	var body strings.Builder
	flush := func() {
		if body.Len() > 0 {
			all = append(all, body.String())
			body.Reset()
		}
	}
	fenced := false
	for l := range strings.Lines(string(src)) {
		l = strings.TrimSpace(l)
		switch {
		case codeMarker.MatchString(l):
			fenced = !fenced
			flush()
		case fenced:
		case l == "" || strings.HasPrefix(l, "#") || strings.HasPrefix(l, "<") || strings.HasPrefix(l, "!") || strings.HasPrefix(l, "---"):
			flush()
		case strings.HasPrefix(l, "|"):
			flush()
			for c := range strings.SplitSeq(strings.Trim(l, "|"), "|") {
				if len(strings.Fields(c)) >= fewestCell {
					all = append(all, strings.TrimSpace(c))
				}
			}
		default:
			if listItem.MatchString(l) {
				flush()
				l = listItem.ReplaceAllString(l, "")
			}
			body.WriteString(l + " ")
		}
	}
	flush()
	return all, nil
}

// comments returns the paragraphs of a Go file's comments, without indented code and directives.
func comments(path string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	var all []string
	for _, g := range f.Comments {
		for p := range strings.SplitSeq(g.Text(), "\n\n") {
			if !strings.HasPrefix(p, "\t") && !strings.HasPrefix(p, "Copyright") {
				all = append(all, p)
			}
		}
	}
	return all, nil
}
