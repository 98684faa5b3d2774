package inflight

import (
	"errors"
	"fmt"
	"time"
)

// A Config says how a bound is found. The zero Config learns it.
type Config struct {
	Limit int // a fixed bound; 0 learns one from answers
	Min   int // the least that is learnt, measuring apart; 0 means 1
	Max   int // the most that is learnt; 0 means Most
}

// Most is the largest bound.
const Most = 100_000

// Validate reports every mistake at once.
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
	perSecond  = 50    // how much it grows meanwhile
	mostRoom   = 1_000 // see learnt.room
	leastCut   = 2     // the bound while draining
	scale      = 1024  // of what is counted in fractions
	unknown    = time.Second
	leastWait  = time.Second
	shortWait  = 100 * time.Millisecond
	fewWait    = 200                    // so few may wait for as long as the upstream stands still,
	afterwards = 500 * time.Millisecond // and so long when it goes on
	standing   = 500 * time.Millisecond // a queue that has not been empty for so long stands

	leastSlack  = 250 * time.Millisecond
	provenFor   = 5 * time.Minute  // see state.proven
	rememberBad = 10 * time.Second // how long a loss is remembered
	calmGap     = 3 * time.Second  // shorter than that, a time out of the calm does not end it

	// A window ends after a second if it has had enough answers, after 10 s if it has had
	// half of that, and after a minute in any case.
	windowLeast, windowLong, windowMost = time.Second, 10 * time.Second, time.Minute
	windowAnswers, windowFew            = 20, 10

	settledAfter = 3 // medians after the first attempt, what answers say can be believed

	// Held is how long an attempt keeps its slot at most whose caller has left.
	Held = 30 * time.Second
)

// While nothing is heard one attempt goes now and then, though every slot is taken.
const (
	firstProbe = time.Second
	lastProbe  = 2 * time.Second
)
