package limit

import (
	"errors"
	"slices"
)

// A Match selects calls by the value of one key, for example all callers whose plan is premium, or all but these. The
// zero Match selects every call. It may be shared by goroutines that do not change it.
type Match struct {
	Scope string   // name of the key; "" selects every call
	In    []string // selects calls with one of these values
	NotIn []string // if In is empty, selects calls with none of these values
}

// Picks reports whether a call with the value is selected. A call without the key has the value "".
func (m *Match) Picks(value string) bool {
	if len(m.In) > 0 {
		return slices.Contains(m.In, value)
	}
	return !slices.Contains(m.NotIn, value)
}

// validate returns what is missing or superfluous.
func (m *Match) validate() error {
	switch {
	case m.Scope == "" && len(m.In)+len(m.NotIn) > 0:
		return errors.New("if: scope is missing: name the scope of the values")
	case m.Scope != "" && (len(m.In) > 0) == (len(m.NotIn) > 0):
		return errors.New("if: want either values that are counted or values that are not")
	}
	return nil
}
