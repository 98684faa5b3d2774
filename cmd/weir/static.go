package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

const staticUsage = `usage: weir static test [flags] "question"

Shows which static answer a question finds, and why. The files and tables are those
of the configuration's cascades, or the file that -answers names.
`

// runStatic is about answers that were written beforehand.
func runStatic(w world) error {
	if len(w.args) > 0 && w.args[0] == "test" {
		w.args = w.args[1:]
		return testStatic(w)
	}
	if len(w.args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, w.args[0]) {
		_, err := io.WriteString(w.out, staticUsage)
		return err
	}
	if len(w.args) > 0 {
		fmt.Fprintf(w.err, "weir static: there is no command %q\n\n", w.args[0])
	}
	_, _ = io.WriteString(w.err, staticUsage)
	return cli.ErrUsage
}

// A bookshelf is a file of answers and where it is used.
type bookshelf struct {
	File      string `json:"file"`
	Upstream  string `json:"upstream,omitempty"`
	Tier      string `json:"tier,omitempty"`
	threshold float64
	table     *config.Answers // in place of a file
}

// A finding is what a question finds in a file.
type finding struct {
	bookshelf
	Answer   string `json:"answer"`          // "" if there is none
	Language string `json:"answer_language"` // of the answer
	answers.Explanation
}

// testStatic shows what a question finds. That nothing would answer is cli.ErrFound.
func testStatic(w world) error {
	f := w.flags("static test", `"question"`)
	file := f.String("answers", "", "the file of answers; those of -config if there is none")
	conf := f.String("config", "", "the configuration whose cascades are looked through; weir.yaml if there is none")
	languages := f.String("language", "", "the caller's languages, as in Accept-Language: ja, or ja,en;q=0.5")
	asJSON := f.Bool("json", false, "print a JSON object for each file")
	question, err := w.question(f)
	if err != nil {
		return err
	}
	accepted := answers.Accepted(*languages)
	if *languages != "" && len(accepted) == 0 {
		fmt.Fprintf(w.err, "weir static test: -language %s: want one of %s\n", *languages, strings.Join(answers.Languages(), ", "))
		return cli.ErrUsage
	}
	shelves := []bookshelf{{File: *file}}
	if *file == "" {
		if shelves, err = shelvesOf(*conf, w); err != nil {
			return err
		}
	}
	return w.look(shelves, question, accepted, *asJSON)
}

// look looks a question up in every file.
func (w world) look(shelves []bookshelf, question string, languages []string, asJSON bool) error {
	found, bad := false, false
	for i, s := range shelves {
		b, err := w.open(s)
		if err != nil {
			fmt.Fprintln(w.err, err)
			bad = true
			continue
		}
		is := finding{bookshelf: s, Explanation: b.Explain(question, languages...)}
		if m, ok := b.Find(question, languages...); ok {
			is.Answer, is.Language, found = m.Answer, m.Language, true
		}
		if err := is.show(w.out, i > 0, asJSON); err != nil {
			return err
		}
	}
	if bad || !found {
		return cli.ErrFound
	}
	return nil
}

// readingTable bounds how long a table may take.
const readingTable = 30 * time.Second

// open reads a file or a table of answers. Rows that are wrong are told.
func (w world) open(s bookshelf) (*answers.Book, error) {
	if s.table == nil {
		b := &answers.Book{Threshold: s.threshold}
		return b, b.Load(s.File)
	}
	t, err := serve.OpenAnswers(s.table, s.threshold)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readingTable)
	defer cancel()
	wrong, err := t.Read(ctx)
	for _, c := range wrong {
		fmt.Fprintln(w.err, c)
	}
	return t.Book(), err
}

func (f finding) show(out io.Writer, more, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(f)
	}
	if more {
		fmt.Fprintln(out)
	}
	at := f.File
	if f.Upstream != "" {
		at += fmt.Sprintf(" (tier %s of %s)", f.Tier, f.Upstream)
	}
	fmt.Fprintf(out, "%-15s%s\n", "file", at)
	if err := f.Print(out); err != nil || f.Answer == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe answer (%s):\n%s\n", f.Language, strings.TrimSpace(f.Answer))
	return err
}

// question is the one argument that is no flag. Flags may stand behind it, too.
func (w world) question(f *flag.FlagSet) (string, error) {
	var words []string
	for {
		if err := w.parse(f, len(w.args)); err != nil {
			return "", err
		}
		if f.NArg() == 0 {
			break
		}
		words, w.args = append(words, f.Arg(0)), f.Args()[1:]
	}
	if len(words) == 1 && strings.TrimSpace(words[0]) != "" {
		return words[0], nil
	}
	if len(words) > 1 {
		fmt.Fprintf(w.err, "weir static test: write the question in quotes: %q\n", strings.Join(words, " "))
	} else {
		fmt.Fprintln(w.err, "weir static test: there is no question")
	}
	f.Usage()
	return "", cli.ErrUsage
}

// shelvesOf is the files of answers that a configuration names, each once for every
// threshold.
func shelvesOf(path string, w world) ([]bookshelf, error) {
	file, err := config.Load(cmp.Or(path, "weir.yaml"), w.env)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no weir.yaml here; name a file with -answers FILE or -config FILE")
	}
	if err != nil {
		fmt.Fprintln(w.err, err)
		return nil, cli.ErrFound
	}
	var all []bookshelf
	for _, upstream := range slices.Sorted(maps.Keys(file.LLM)) {
		c := file.LLM[upstream].Cascade
		if c == nil {
			continue
		}
		for _, t := range c.Tiers {
			s := bookshelf{t.Answers, upstream, t.Name, t.Threshold, t.Table}
			if t.Table != nil {
				s.File = "table " + t.Table.Table
			}
			if t.Static() && !slices.ContainsFunc(all, func(o bookshelf) bool { return o.File == s.File && o.threshold == s.threshold }) {
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no cascade has static answers; write - {answers: FILE} among its tiers, or name a file with -answers", cmp.Or(path, "weir.yaml"))
	}
	return all, nil
}
