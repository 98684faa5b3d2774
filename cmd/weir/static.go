package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

func newStatic(w world) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:     "static COMMAND",
		Short:   "Test static answers",
		Long:    "Test static answers, which weir gives when no language model can answer.",
		Example: `  weir static test "when do you open?"`,
	})
	c.AddCommand(newStaticTest(w))
	return c
}

func newStaticTest(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "test QUESTION",
		Short: "Show which static answer matches a question, and why",
		Long: `Show which static answer matches a question, and why. weir looks in the files and tables of the configuration's cascades, or in the file that
--answers names. The exit status is 1 if no answer is found.`,
		Example: `  weir static test "when do you open?" --answers answers.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("write the question in quotes: %q", strings.Join(args, " "))
			case len(args) == 0 || strings.TrimSpace(args[0]) == "":
				return usagef("QUESTION is missing")
			}
			return nil
		},
	}
	file := c.Flags().String("answers", "", "`FILE` of answers; default: the answers of the configuration")
	_ = c.MarkFlagFilename("answers", "yaml", "yml")
	conf := configFlag(c, "")
	languages := c.Flags().String("language", "", "`LANGUAGES` of the caller, as in Accept-Language: ja, or ja,en;q=0.5")
	completeFixed(c, "language", answers.Languages()...)
	asJSON := c.Flags().Bool("json", false, "print a JSON object for each file")
	c.RunE = func(_ *cobra.Command, args []string) error {
		accepted := answers.Accepted(*languages)
		if *languages != "" && len(accepted) == 0 {
			return usagef("--language %q: want some of %s", *languages, strings.Join(answers.Languages(), ", "))
		}
		shelves := []bookshelf{{File: *file}}
		if *file == "" {
			var err error
			if shelves, err = shelvesOf(*conf, w); err != nil {
				return err
			}
		}
		return w.look(shelves, args[0], accepted, *asJSON)
	}
	return c
}

// A bookshelf is a file of answers and its use.
type bookshelf struct {
	File      string `json:"file"`
	Upstream  string `json:"upstream,omitempty"`
	Tier      string `json:"tier,omitempty"`
	threshold float64
	table     *config.Answers // instead of a file
}

// A finding is the result of a question in a file.
type finding struct {
	bookshelf
	Answer   string `json:"answer"`          // empty if no answer matches
	Language string `json:"answer_language"` // language of the answer
	answers.Explanation
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

// readingTable is the timeout for reading a table.
const readingTable = 30 * time.Second

// open reads a file or a table of answers. It prints invalid rows.
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

// shelvesOf returns the files of answers in a configuration, each once per threshold.
func shelvesOf(path string, w world) ([]bookshelf, error) {
	file, err := config.Load(cmp.Or(path, "weir.yaml"), w.env)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no weir.yaml here: name a file with --answers FILE or --config FILE")
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
		return nil, fmt.Errorf("%s: no cascade has static answers; write - {answers: FILE} among its tiers, or name a file with --answers", cmp.Or(path, "weir.yaml"))
	}
	return all, nil
}
