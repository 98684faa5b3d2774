package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir"
)

// A Flight describes a concurrency bound.
type Flight struct {
	Operation string  `json:"operation,omitempty"` // empty for the bound of all operations together
	State     string  `json:"state"`               // fixed, calm, busy or draining
	InFlight  int     `json:"in_flight"`
	Held      int     `json:"held"` // attempts among these whose callers have left
	Bound     int     `json:"bound"`
	Waiting   int     `json:"waiting"` // calls that wait for a slot
	BaseMS    float64 `json:"base_ms"` // latency without a queue; 0 if it is not known yet
	Rate      float64 `json:"rate"`    // highest number of responses per second
	Refused   uint64  `json:"refused"`
	Drains    uint64  `json:"drains"`
	Probes    uint64  `json:"probes"`
	Lost      uint64  `json:"lost,omitempty"` // permits that the program dropped without a report
}

func flightOf(v weir.FlightView) Flight {
	f := Flight{
		Operation: v.Operation, State: "busy", InFlight: v.InFlight, Held: v.Held, Bound: v.Bound, Waiting: v.Waiting,
		BaseMS: float64(v.Base.Microseconds()) / 1000, Rate: v.Rate, Refused: v.Refused, Drains: v.Drains, Probes: v.Probes, Lost: v.Lost,
	}
	switch {
	case v.Fixed:
		f.State = "fixed"
	case v.Draining:
		f.State = "draining"
	case v.Calm:
		f.State = "calm"
	}
	return f
}

func printFlights(w io.Writer, flights []Flight) {
	if len(flights) > 0 {
		fmt.Fprintln(w, "  IN FLIGHT\tSTATE\tNOW\tABANDONED\tWAITING\tREFUSED\tDRAINS\tBASE LATENCY\tRESPONSES")
	}
	for _, f := range flights {
		name := f.Operation
		if name == "" {
			name = "(all)"
		}
		base, rate := "-", "-"
		if f.BaseMS > 0 {
			base, rate = fmt.Sprintf("%.3gms", f.BaseMS), fmt.Sprintf("%.4g/s", f.Rate)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d/%d\t%d\t%d\t%d\t%d\t%s\t%s\n", name, f.State, f.InFlight, f.Bound, f.Held, f.Waiting, f.Refused, f.Drains, base, rate)
	}
}
