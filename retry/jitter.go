package retry

import (
	"fmt"
	"slices"
	"strings"
)

// A Jitter is a way to randomize delays. The ceiling below is Base, doubled after each failed attempt, and at most Cap.
// Randomness is added after the cap, so that callers that have reached the cap do not retry in step.
type Jitter uint8

const (
	FullJitter         Jitter = iota // from 0 to the ceiling: least load for the upstream, and the default
	NoJitter                         // the ceiling itself: for a single caller, or for tests
	EqualJitter                      // from half the ceiling to the ceiling
	DecorrelatedJitter               // from Base to three times the last delay, at most Cap
	RangeJitter                      // the ceiling times a factor from Low to High: up to Cap*High
	AddedJitter                      // the ceiling plus an amount from 0 to Added: up to Cap+Added
)

var jitters = []string{"full", "none", "equal", "decorrelated", "range", "added"}

// String returns the name in configuration files.
func (j Jitter) String() string {
	if int(j) < len(jitters) {
		return jitters[j]
	}
	return fmt.Sprintf("jitter(%d)", uint8(j))
}

// MarshalText returns the name, or an error for an unknown Jitter.
func (j Jitter) MarshalText() ([]byte, error) {
	if int(j) >= len(jitters) {
		return nil, fmt.Errorf("%v: not a kind of jitter", j)
	}
	return []byte(jitters[j]), nil
}

// UnmarshalText parses a name. It does not change j if the name is unknown.
func (j *Jitter) UnmarshalText(text []byte) error {
	i := slices.Index(jitters, string(text))
	if i < 0 {
		return fmt.Errorf("jitter %q: must be one of %s", text, strings.Join(jitters, ", "))
	}
	*j = Jitter(i)
	return nil
}
