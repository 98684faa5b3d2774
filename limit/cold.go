package limit

import (
	"fmt"
	"slices"
	"strings"
)

// A Cold states what a process does with a limit whose usage the store does not know, because the store is new or
// lost its data. With the zero Cold the limit is never exceeded.
type Cold uint8

const (
	ColdRefuse Cold = iota // unknown usage counts as used up
	ColdShare              // each process uses at most its share: the limit divided by the number of processes in contact with the store
	ColdFull               // the limit starts full
)

var colds = [...]string{"refuse", "share", "full"}

// String returns the name in files.
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
