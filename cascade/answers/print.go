package answers

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/seed1158cd35/weir/internal/doc"
)

// Print writes an explanation as a table. For programs, marshal it as JSON.
func (e Explanation) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "question\t%s\n", doc.Quote(e.Question))
	fmt.Fprintf(t, "threshold\t%.2f\n", e.Threshold)
	for _, s := range e.Searches {
		fmt.Fprintf(t, "looked up, %s\t%s\n", s.Language, dash(strings.Join(s.Terms, " ")))
	}
	fmt.Fprintf(t, "verdict\t%s\n", e.verdict())
	if len(e.Candidates) > 0 {
		fmt.Fprintln(t, "\nENTRY\tCONFIDENCE\tSCORE\tMATCHED\tIN\tTEXT\tVERDICT")
	}
	for _, c := range e.Candidates {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%s\t%s\t%s\t%s\n", c.ID, c.Confidence, c.Score,
			strings.Join(c.Terms, " "), c.Language+" "+c.Field, c.shown(), e.verdictOn(c))
	}
	return t.Flush()
}

func (e Explanation) verdict() string {
	switch {
	case len(e.Searches) == 0:
		return "no answer: no entry has the language of the question"
	case len(e.Candidates) == 0:
		return "no answer: no entry shares a word with the question"
	case !e.Candidates[0].Answers:
		return fmt.Sprintf("no answer: %s comes closest, but is below the threshold", e.Candidates[0].ID)
	}
	return "answered by " + e.Candidates[0].ID
}

func (e Explanation) verdictOn(c Candidate) string {
	switch {
	case c.Answers:
		return "answers"
	case c.Confidence >= e.Threshold:
		return "another entry matches better"
	}
	return "below threshold"
}

// shown returns the text of a question or keyword. For all texts together it returns "-", because they would be too
// long.
func (c Candidate) shown() string {
	if c.Field == everything {
		return "-"
	}
	return doc.Quote(c.Text)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
