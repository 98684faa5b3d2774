package line

import (
	"cmp"
	"errors"
	"fmt"
)

// A Config says how much may wait, and how priorities share what comes. Flows of a priority share by
// the weights of their calls.
type Config struct {
	// Weights are those of the priorities, the highest first. While all of them have
	// somebody waiting, each gets its share of what comes; 0 means 16, 4 and 1: a
	// priority gets four times what the next one gets, and the last still a 21st.
	Weights [Priorities]int

	Longest int // most that wait, all together; 0 means 10,000
	PerFlow int // most of one flow that wait; 0 means 1,000
}

// mostWeight is the largest weight of a priority or of a flow.
const mostWeight = 1000

// WithDefaults is c with every field that is 0 replaced by its default.
func (c Config) WithDefaults() Config {
	for i, w := range [Priorities]int{16, 4, 1} {
		c.Weights[i] = cmp.Or(c.Weights[i], w)
	}
	c.Longest = cmp.Or(c.Longest, 10_000)
	c.PerFlow = cmp.Or(c.PerFlow, 1_000)
	return c
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	for i, name := range [Priorities]string{"high", "normal", "low"} {
		if w := c.Weights[i]; w < 0 || w > mostWeight {
			errs = append(errs, fmt.Errorf("weight %d of priority %s: want 1 to %d, or 0 for the default", w, name, mostWeight))
		}
	}
	if c.Longest < 0 {
		errs = append(errs, fmt.Errorf("longest %d: must not be negative; to let no call wait, set the longest wait below 0", c.Longest))
	}
	if c.PerFlow < 0 {
		errs = append(errs, fmt.Errorf("per flow %d: must not be negative", c.PerFlow))
	}
	return errors.Join(errs...)
}
