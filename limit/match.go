package limit

import (
	"errors"
	"slices"
)

// A Match picks calls by one of their keys: the limit of those whose plan is premium,
// and that of all others. The zero Match picks every call.
type Match struct {
	Scope string   // the name of the key; "" means every call
	In    []string // any of these values
	NotIn []string // or, if In is empty, none of these
}

// Picks reports whether a call with the value is counted. A call without the key has the
// value "".
func (m *Match) Picks(value string) bool {
	if len(m.In) > 0 {
		return slices.Contains(m.In, value)
	}
	return !slices.Contains(m.NotIn, value)
}

// validate says what is missing or too much.
func (m *Match) validate() error {
	switch {
	case m.Scope == "" && len(m.In)+len(m.NotIn) > 0:
		return errors.New("if: scope is missing: name the scope of the values")
	case m.Scope != "" && (len(m.In) > 0) == (len(m.NotIn) > 0):
		return errors.New("if: want either values that are counted or values that are not")
	}
	return nil
}
