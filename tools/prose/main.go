// Prose measures how pages and Go comments read, and exits with status 1 if a file has more oblique constructions per
// 1,000 words than -max allows. Files under 100 words may have one.
//
//	usage: prose [-max RATE] [-list FILE] [PATH...]
//
// A PATH is a Markdown page, a Go file, or a directory of them. FILE names one PATH a line. Code, headings and short cells of tables are not measured.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// longSentence is the number of words above which a sentence is long.
const longSentence = 30

// A count is what a file's prose contains.
type count struct {
	sentences, words, long int
	oblique                []string // sentences with findings, each marked >>like this<<
	findings               int
}

func (c *count) rate() float64 { return 1000 * float64(c.findings) / float64(max(c.words, 1)) }

func main() {
	most := flag.Float64("max", 0, "most oblique constructions per 1,000 words of a file; 0 only measures")
	list := flag.String("list", "", "a file that names paths, one a line")
	flag.Parse()
	paths := flag.Args()
	if *list != "" {
		more, err := readList(*list)
		exitOn(err)
		paths = append(paths, more...)
	}
	ok := true
	for _, root := range paths {
		files, err := filesIn(root)
		exitOn(err)
		for _, path := range files {
			c, err := measure(path)
			exitOn(err)
			ok = report(path, c, *most) && ok
		}
	}
	if !ok {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
}

// readList returns the paths that a file lists. Empty lines and lines that begin with # are skipped.
func readList(path string) (paths []string, err error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(src)) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			paths = append(paths, l)
		}
	}
	return paths, nil
}

// filesIn returns the pages and Go files at or below a path, in order.
func filesIn(root string) (files []string, err error) {
	skipped := []string{"vendor", "testdata", "node_modules", ".git"}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && (strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".go")):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func measure(path string) (c count, err error) {
	read := markdown
	if strings.HasSuffix(path, ".go") {
		read = comments
	}
	paragraphs, err := read(path)
	for _, p := range paragraphs {
		for _, s := range sentences(p) {
			c.add(s)
		}
	}
	return c, err
}

func (c *count) add(s sentence) {
	c.sentences++
	c.words += s.words
	if s.words > longSentence {
		c.long++
	}
	found := findings(s.text)
	if len(found) == 0 {
		return
	}
	c.findings += len(found)
	slices.SortFunc(found, func(a, b finding) int { return b.from - a.from })
	text := s.text
	for _, f := range found {
		text = text[:f.from] + ">>" + text[f.from:f.to] + "<<" + text[f.to:]
	}
	c.oblique = append(c.oblique, text)
}

// report prints a file's figures where they are asked for or too high, and reports whether they are not too high.
func report(path string, c count, most float64) bool {
	ok := most == 0 || c.rate() <= most || c.findings <= 1 && c.words < 100
	if most == 0 || !ok {
		fmt.Printf("%s: %d words, %.1f per sentence, %d long sentences, %.1f oblique constructions per 1,000 words\n",
			path, c.words, float64(c.words)/float64(max(c.sentences, 1)), c.long, c.rate())
	}
	if !ok {
		for _, s := range c.oblique {
			fmt.Println("\t" + s)
		}
	}
	return ok
}
