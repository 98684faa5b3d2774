// Package doc reads files that people have written, and says what is wrong with them: every
// mistake at once, each with its line, its field and what to write instead.
package doc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Complaint is one mistake in a file.
type Complaint struct {
	File    string // its path, or "environment"
	Line    int    // from 1; 0 if the mistake has no place
	Column  int
	Field   string // "upstreams.s3.limits.put.rate", or the variable; "" for the file as a whole
	Problem string
	Hint    string // what to write instead; often ""
}

// Error reads "weir.yaml:12:5: upstreams.s3.limits.put.rate: ...".
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

// Sorted is e in the order of the file, without repetitions.
func (e Errors) Sorted() Errors {
	slices.SortStableFunc(e, func(a, b Complaint) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

const longestShown = 60

// Quote is a text as it stands in a complaint: on one line and not too long.
func Quote(s string) string {
	if len(s) <= longestShown {
		return strconv.Quote(s)
	}
	cut := longestShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}
