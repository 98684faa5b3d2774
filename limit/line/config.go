package line

import (
	"cmp"
	"errors"
	"fmt"
)

// A Config bounds how much may wait, and sets how priorities share. Flows of a priority share by the weights of their
// calls.
type Config struct {
	// Weights of the priorities, the highest first. While calls of each wait, each priority gets a share in
	// proportion to its weight. 0 means 16, 4 and 1: a priority gets four times the share of the next one, and the
	// last still a 21st.
	Weights [Priorities]int

	Longest int // most waiting calls in total; 0 means 10,000
	PerFlow int // most waiting calls of one flow; 0 means 1,000
}

// mostWeight is the largest weight of a priority or of a flow.
const mostWeight = 1000

// WithDefaults returns c with every field that is 0 replaced by its default.
func (c Config) WithDefaults() Config {
	for i, w := range [Priorities]int{16, 4, 1} {
		c.Weights[i] = cmp.Or(c.Weights[i], w)
	}
	c.Longest = cmp.Or(c.Longest, 10_000)
	c.PerFlow = cmp.Or(c.PerFlow, 1_000)
	return c
}

// Validate returns all mistakes.
func (c Config) Validate() error {
	var errs []error
	for i, name := range [Priorities]string{"high", "normal", "low"} {
		if w := c.Weights[i]; w < 0 || w > mostWeight {
			errs = append(errs, fmt.Errorf("weight %d of priority %s: want 1 to %d, or 0 for the default", w, name, mostWeight))
		}
	}
	if c.Longest < 0 {
		errs = append(errs, fmt.Errorf("longest %d: must not be negative; to prevent calls from waiting, set the longest wait below 0", c.Longest))
	}
	if c.PerFlow < 0 {
		errs = append(errs, fmt.Errorf("per flow %d: must not be negative", c.PerFlow))
	}
	return errors.Join(errs...)
}
