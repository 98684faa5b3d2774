// Package doc parses files that people write and reports all mistakes, each with its line, its field and a correction.
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
	File    string // path of the file, or "environment"
	Line    int    // from 1; 0 for a mistake without a place
	Column  int
	Field   string // "upstreams.s3.limits.put.rate", or the variable; "" for the complete file
	Problem string
	Hint    string // correction; often ""
}

// Error returns text such as "weir.yaml:12:5: upstreams.s3.limits.put.rate: ...".
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

// Errors are all mistakes of a file, in the file's order.
type Errors []Complaint

// Error returns one line per mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, c := range e {
		lines[i] = c.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each complaint.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, c := range e {
		errs[i] = c
	}
	return errs
}

// Sorted returns e in the order of the file, without duplicates.
func (e Errors) Sorted() Errors {
	slices.SortStableFunc(e, func(a, b Complaint) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

const longestShown = 60

// Quote returns a text for a complaint: on one line, and shortened.
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
