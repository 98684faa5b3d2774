package price

import (
	"fmt"
	"strings"
)

// A Complaint is one mistake in a table.
type Complaint struct {
	File         string
	Line, Column int    // from 1; 0 if the mistake has no place
	Field        string // "models.gpt-4o.input"; "" for the file as a whole
	Problem      string
	Hint         string // what to write instead; often ""
}

// Error reads "prices.yaml:12:5: models.gpt-4o.input: ...".
func (c Complaint) Error() string {
	text := c.File
	if c.Line > 0 {
		text += fmt.Sprintf(":%d:%d", c.Line, c.Column)
	}
	if c.Field != "" {
		text += ": " + c.Field
	}
	text += ": " + c.Problem
	if c.Hint != "" {
		text += "; " + c.Hint
	}
	return text
}

// Errors is every mistake of a table, in the order of the file.
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

// meant is a hint at the field that a name stands for: the one that most of the pairs
// of letters next to each other are those of, if half of them are.
func meant(name string, fields []string) string {
	best, most := "", 0.5
	for _, f := range fields {
		if s := alike(strings.ToLower(name), f); s >= most {
			best, most = f, s
		}
	}
	if best == "" {
		return "want one of " + strings.Join(fields, ", ")
	}
	return "did you mean " + best + "?"
}

// alike is twice the pairs that two words share by the pairs they have in all, from 0
// to 1 (Dice's coefficient).
func alike(a, b string) float64 {
	if len(a) < 2 || len(b) < 2 || len(a) > 64 {
		return 0
	}
	pairs := map[string]int{}
	for i := range len(b) - 1 {
		pairs[b[i:i+2]]++
	}
	shared := 0
	for i := range len(a) - 1 {
		if pairs[a[i:i+2]] > 0 {
			pairs[a[i:i+2]]--
			shared++
		}
	}
	return float64(2*shared) / float64(len(a)+len(b)-2)
}
