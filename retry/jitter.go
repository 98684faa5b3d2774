package retry

import (
	"fmt"
	"slices"
	"strings"
)

// A Jitter is how chance enters a delay. The ceiling below is Base doubled once
// per failed attempt, and never above Cap; chance is added after the cap, so
// that callers which have all reached it do not march in step.
type Jitter uint8

const (
	FullJitter         Jitter = iota // from 0 to the ceiling: least work for the upstream, and the default
	NoJitter                         // the ceiling itself: for one caller alone, or for tests
	EqualJitter                      // from half the ceiling to the ceiling
	DecorrelatedJitter               // from Base to three times the last delay, or Cap if that is less
	RangeJitter                      // the ceiling times a factor from Low to High: up to Cap*High
	AddedJitter                      // the ceiling plus an amount from 0 to Added: up to Cap+Added
)

var jitters = []string{"full", "none", "equal", "decorrelated", "range", "added"}

// String is the name that configuration files use.
func (j Jitter) String() string {
	if int(j) < len(jitters) {
		return jitters[j]
	}
	return fmt.Sprintf("jitter(%d)", uint8(j))
}

// MarshalText writes the name; a Jitter that has none is an error.
func (j Jitter) MarshalText() ([]byte, error) {
	if int(j) >= len(jitters) {
		return nil, fmt.Errorf("%v: not a kind of jitter", j)
	}
	return []byte(jitters[j]), nil
}

// UnmarshalText reads a name, and leaves j alone if it is not one.
func (j *Jitter) UnmarshalText(text []byte) error {
	i := slices.Index(jitters, string(text))
	if i < 0 {
		return fmt.Errorf("jitter %q: must be one of %s", text, strings.Join(jitters, ", "))
	}
	*j = Jitter(i)
	return nil
}
