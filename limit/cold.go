package limit

import (
	"fmt"
	"slices"
	"strings"
)

// A Cold is what a process does with a limit of which the store does not know what was used, as the store is new or lost its
// memory. The zero Cold never exceeds the limit. A Cold is a value and may be shared.
type Cold uint8

const (
	ColdRefuse Cold = iota // what is not known counts as used up
	ColdShare              // each process uses at most its share: the limit, divided by the processes that the store hears
	ColdFull               // the limit starts full
)

var colds = [...]string{"refuse", "share", "full"}

// String is the name in files.
func (c Cold) String() string {
	if int(c) < len(colds) {
		return colds[c]
	}
	return fmt.Sprintf("cold %d", uint8(c))
}

// MarshalText writes the name in files.
func (c Cold) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name in files, in any case.
func (c *Cold) UnmarshalText(text []byte) error {
	i := slices.Index(colds[:], strings.ToLower(string(text)))
	if i < 0 {
		return fmt.Errorf("cold %q: want refuse, share or full", text)
	}
	*c = Cold(i)
	return nil
}
