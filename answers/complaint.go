package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Complaint is one mistake in a file of answers.
type Complaint struct {
	File    string
	Line    int // from 1; 0 if the mistake has no place
	Column  int
	Field   string // "answers[3].questions[0]"; "" for the file as a whole
	Problem string
	Hint    string // what to write instead; often ""
}

// Error reads "answers.yaml:12:5: answers[3].id: ...".
func (c Complaint) Error() string {
	var b strings.Builder
	b.WriteString(c.File)
	if c.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", c.Line, c.Column)
	}
	for _, part := range []string{c.Field, c.Problem} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if c.Hint != "" {
		b.WriteString("; " + c.Hint)
	}
	return b.String()
}

// Errors is every mistake of a file, in the order of the file.
type Errors []Complaint

// Error has one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, c := range e {
		lines[i] = c.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each complaint.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, c := range e {
		errs[i] = c
	}
	return errs
}

// sorted is e in the order of the file.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Complaint) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// suggest is a hint at what may have been meant.
func suggest(name string, known []string) string {
	if best := closest(strings.ToLower(name), known, min(len(name)/3, 3)+1); best != "" {
		return "did you mean " + best + "?"
	}
	return "want one of " + strings.Join(known, ", ")
}

const longestShown = 60

// quote is a text as it stands in a complaint: on one line and not too long.
func quote(s string) string {
	if len(s) <= longestShown {
		return strconv.Quote(s)
	}
	cut := longestShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}
