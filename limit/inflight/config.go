package inflight

import (
	"errors"
	"fmt"
	"time"
)

// A Config configures a bound. The zero Config learns it.
type Config struct {
	Limit int // a fixed bound; 0 learns one from responses
	Min   int // the lowest learned bound, except while measuring; 0 means 1
	Max   int // the highest learned bound; 0 means Most
}

// Most is the largest bound.
const Most = 100_000

// Validate returns all mistakes, joined.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		n    int
	}{{"limit", c.Limit}, {"min", c.Min}, {"max", c.Max}} {
		if f.n < 0 || f.n > Most {
			errs = append(errs, fmt.Errorf("%s %d: must be between 0 and %d", f.name, f.n, Most))
		}
	}
	if c.Max > 0 && c.Min > c.Max {
		errs = append(errs, fmt.Errorf("min %d: must not be above max %d", c.Min, c.Max))
	}
	if c.Limit > 0 && (c.Min > 0 || c.Max > 0) {
		errs = append(errs, errors.New("limit: a fixed one has neither min nor max"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Min = max(c.Min, 1)
	if c.Max == 0 {
		c.Max = Most
	}
	return c
}

// The constants were chosen by simulation: see bench/records/recovery.md.
const (
	first      = 20    // the bound before anything is known
	perSecond  = 50    // growth per second meanwhile
	mostRoom   = 1_000 // see learnt.room
	leastCut   = 2     // the bound while draining
	scale      = 1024  // fixed-point factor of fractions
	unknown    = time.Second
	leastWait  = time.Second
	shortWait  = 100 * time.Millisecond
	fewWait    = 200                    // at most this many calls wait as long as the upstream stalls,
	afterwards = 500 * time.Millisecond // and this long after it recovers
	standing   = 500 * time.Millisecond // a queue that has not been empty for this long is standing

	leastSlack  = 250 * time.Millisecond
	provenFor   = 5 * time.Minute  // see state.proven
	rememberBad = 10 * time.Second // how long a loss is remembered
	calmGap     = 3 * time.Second  // a shorter interruption does not end the calm

	// A window ends after a second if it has enough responses, after 10 s if it has half as many, and after a minute
	// in any case.
	windowLeast, windowLong, windowMost = time.Second, 10 * time.Second, time.Minute
	windowAnswers, windowFew            = 20, 10

	settledAfter = 3 // number of medians after the first attempt from which responses are reliable

	// Held is how long an attempt keeps its slot at most after its caller has left.
	Held = 30 * time.Second
)

// While no response arrives, single attempts are sent as probes although every slot is taken.
const (
	firstProbe = time.Second
	lastProbe  = 2 * time.Second
)
