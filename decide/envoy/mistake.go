package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Mistake is one thing that is wrong with a file of rules.
type Mistake struct {
	File    string
	Line    int // from 1; 0 if it concerns the file as a whole
	Column  int
	Problem string
	Hint    string // what to write instead; often ""
}

// Error reads "rules.yaml:12:5: unknown field ...; ...".
func (m Mistake) Error() string {
	place := m.File
	if m.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column)
	}
	if m.Hint != "" {
		return place + ": " + m.Problem + "; " + m.Hint
	}
	return place + ": " + m.Problem
}

// Mistakes are all that was found, in the order of the files.
type Mistakes []Mistake

// Error has one line for each.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each mistake.
func (m Mistakes) Unwrap() []error {
	errs := make([]error, len(m))
	for i := range m {
		errs[i] = m[i]
	}
	return errs
}

// err is m in order, nil if there is none.
func (m Mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(m)
}
