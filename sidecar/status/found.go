package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/limit"
)

// Found is what this process found of the store that it shares limits through.
type Found struct {
	Reached bool   `json:"reached"`         // it has answered since the start
	Looks   int    `json:"looks"`           // until it did, or until now
	Error   string `json:"error,omitempty"` // why it did not answer when it was looked last, and what to do
	Cold    []Cold `json:"cold,omitempty"`  // what it does not know
	Clock   *Clock `json:"clock,omitempty"` // of stores whose clock has to be measured
}

// Clock is what this process knows of the store's clock.
type Clock struct {
	Known         bool  `json:"known"`
	Rough         bool  `json:"rough"`    // the store grants less than it could until it is known better
	AheadMS       int64 `json:"ahead_ms"` // of this machine's clock
	UncertaintyMS int64 `json:"uncertainty_ms"`
	RoundTripMS   int64 `json:"round_trip_ms"` // the shortest
}

// Cold says that the store does not know what was used of an upstream's limits, as it is
// new or was emptied. The limits with the same cold setting make one Cold.
type Cold struct {
	Upstream string `json:"upstream"`
	Limit    string `json:"limit"`    // that which lasts longest
	Quota    bool   `json:"quota"`    // it is one by the calendar: nothing of it goes before its window ends
	LastsMS  int64  `json:"lasts_ms"` // at most

	// Mode is what the limit's cold setting says: limit.ColdRefuse counts what is not known as used up.
	Mode limit.Cold `json:"cold"`
}

// Effect describes what processes do with the limits meanwhile, for so long at most.
func (c *Cold) Effect(lasts any) string {
	const unknown = "the store is cold: it has no record of the usage of its limits and "
	switch c.Mode {
	case limit.ColdShare:
		return fmt.Sprintf(unknown+"each process uses at most its share, %s for at most %v more; earlier usage may exceed the limit", c.Limit, lasts)
	case limit.ColdFull:
		return fmt.Sprintf(unknown+"they started full, %s for at most %v more; earlier usage may exceed the limit", c.Limit, lasts)
	}
	return fmt.Sprintf(unknown+"counts them as used up, %s for at most %v more; if they were not used, run weir store init", c.Limit, lasts)
}

func (f *Found) print(w io.Writer) {
	switch {
	case !f.Reached && f.Error != "":
		fmt.Fprintf(w, "  the store has not been reached since the start, after %d attempts: %s\n", f.Looks, f.Error)
	case f.Error != "":
		fmt.Fprintf(w, "  the store did not answer the last check: %s\n", f.Error)
	}
	if c := f.Clock; c != nil && !c.Known {
		fmt.Fprintf(w, "  the store's clock is not known yet: limits grant nothing until the store has answered\n")
	} else if c != nil && c.Rough {
		fmt.Fprintf(w, "  the store's clock is known only within %v: limits grant less until a measurement is more precise\n", ms(c.UncertaintyMS))
	}
	for i := range f.Cold {
		c := &f.Cold[i]
		fmt.Fprintf(w, "  %s: %s\n", c.Upstream, c.Effect(ms(c.LastsMS)))
	}
}
