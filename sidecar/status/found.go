package status

import (
	"fmt"
	"io"
)

// Found is what this process found of the store that it shares limits through.
type Found struct {
	Reached bool   `json:"reached"`         // it has answered since the start
	Looks   int    `json:"looks"`           // until it did, or until now
	Error   string `json:"error,omitempty"` // why it did not answer when it was looked last, and what to do
	Cold    []Cold `json:"cold,omitempty"`  // what it does not know
}

// Cold says that the store does not know what was used of an upstream's limits, as it is
// new or was emptied. What it does not know counts as used up.
type Cold struct {
	Upstream string `json:"upstream"`
	Limit    string `json:"limit"`    // that which lasts longest
	Quota    bool   `json:"quota"`    // it is one by the calendar: nothing of it goes before its window ends
	LastsMS  int64  `json:"lasts_ms"` // at most
}

func (f *Found) print(w io.Writer) {
	switch {
	case !f.Reached && f.Error != "":
		fmt.Fprintf(w, "  the store has not been reached yet, after %d looks: %s\n", f.Looks, f.Error)
	case f.Error != "":
		fmt.Fprintf(w, "  the store did not answer when it was looked last: %s\n", f.Error)
	}
	for i := range f.Cold {
		c := &f.Cold[i]
		fmt.Fprintf(w, "  %s: the store is cold: it does not know what was used of its limits and counts all as used up, %s for at most %v more; if nobody used them, run weir store init\n",
			c.Upstream, c.Limit, ms(c.LastsMS))
	}
}
