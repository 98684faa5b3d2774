package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/limit"
)

// Found describes the store through which this process shares limits.
type Found struct {
	Reached bool   `json:"reached"`         // it has responded since the start
	Looks   int    `json:"looks"`           // number of checks until then, or until now
	Error   string `json:"error,omitempty"` // why the last check failed, and what to do
	Cold    []Cold `json:"cold,omitempty"`  // limits that it does not know
	Clock   *Clock `json:"clock,omitempty"` // for stores whose clock must be measured
}

// Clock is the measured clock of the store.
type Clock struct {
	Known         bool  `json:"known"`
	Rough         bool  `json:"rough"`    // the store grants less than it could until the measurement is more precise
	AheadMS       int64 `json:"ahead_ms"` // ahead of this machine's clock
	UncertaintyMS int64 `json:"uncertainty_ms"`
	RoundTripMS   int64 `json:"round_trip_ms"` // the shortest
}

// A Cold reports that the store does not know the usage of an upstream's limits, because it is new or was emptied.
// The limits with the same cold setting share one Cold.
type Cold struct {
	Upstream string `json:"upstream"`
	Limit    string `json:"limit"`    // the limit that is cold for longest
	Quota    bool   `json:"quota"`    // it is a calendar quota: nothing is granted before its window ends
	LastsMS  int64  `json:"lasts_ms"` // at most

	// Mode is the limit's cold setting. limit.ColdRefuse treats unknown usage as used up.
	Mode limit.Cold `json:"cold"`
}

// Effect describes how processes use the limits meanwhile, for at most lasts.
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
