package status

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// Print writes a report as tables for people.
func Print(w io.Writer, r Report) error {
	fmt.Fprintf(w, "weir %s, up %v", r.Version, time.Since(r.Started).Round(time.Second))
	if r.Draining {
		fmt.Fprint(w, ", draining")
	}
	fmt.Fprintln(w)
	if r.Config != nil {
		r.Config.Print(w)
	}
	for _, t := range r.Troubles {
		fmt.Fprintf(w, "PROBLEM with %s: %s; %s\n", t.With, t.Error, t.Help)
	}
	if r.Fleet != nil {
		r.Fleet.print(w)
	}
	if r.Deliveries != nil {
		r.Deliveries.print(w)
	}
	if len(r.Upstreams) == 0 {
		fmt.Fprintln(w, "no upstreams")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, u := range r.Upstreams {
		fmt.Fprintf(t, "\n%s\tretries remaining: %d\n", u.Name, u.RetriesLeft)
		printLimits(t, u.Limits)
		printTrials(t, u.Shadow)
		printBreakers(t, u.Breakers)
		printFlights(t, u.Flights)
		if u.Retries != nil {
			u.Retries.print(t)
		}
		if u.Model != nil {
			u.Model.print(t)
		}
		printPauses(t, u.Pauses, u.PausesInAll)
	}
	return t.Flush()
}

func printLimits(w io.Writer, limits []Limit) {
	if len(limits) > 0 {
		fmt.Fprintln(w, "  LIMIT\tKEY\tCONFIGURED\tRATE NOW\tREMAINING\tFULL IN\tPAUSED FOR")
	}
	for _, l := range limits {
		key := l.Key
		if l.KeysKnown > 0 {
			key = fmt.Sprintf("(%d keys)", l.KeysKnown)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			l.Name, dash(key), l.Configured(), l.RateNow(), l.Remaining("/"), l.FullIn(), zero(l.PausedMS, "-"))
	}
}

// RateNow returns the rate in force, and "-" for a calendar window or a budget, whose amount may be used all at one time.
func (l *Limit) RateNow() string {
	if !l.ResetAt.IsZero() || l.USD != nil {
		return "-"
	}
	return fmt.Sprintf("%.4g/s", l.Rate)
}

// Configured describes the rule with its unit.
func (l *Limit) Configured() string {
	if l.USD != nil {
		return l.Rule // contains the unit
	}
	return l.Rule + " " + l.Unit
}

// Remaining describes the remaining units, with a text between them and the units when full: "3/5", "12.40/25.00 USD".
func (l *Limit) Remaining(of string) string {
	if l.USD == nil {
		return fmt.Sprintf("%d%s%d%s", l.Left, of, l.Full, l.Held())
	}
	s := limit.Dollars(l.Left) + of + limit.Dollars(l.Full) + " USD"
	if l.USD.Held > 0 {
		s += fmt.Sprintf(", %.6g held by calls in flight", l.USD.Held)
	}
	return s
}

// Held describes the part of the burst that is held back; "" if there is none.
func (l *Limit) Held() string {
	if l.HeldBack == 0 {
		return ""
	}
	return fmt.Sprintf(", %d held back", l.HeldBack)
}

// FullIn describes how long it takes until all units are available.
func (l *Limit) FullIn() string {
	in := zero(l.ResetMS, "now")
	if !l.ResetAt.IsZero() {
		in += ", " + l.ResetAt.Format(time.RFC3339)
	}
	return in
}

// PrintBreakers writes the breakers of an upstream as a table.
func PrintBreakers(w io.Writer, u Upstream) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, u.Name)
	printBreakers(t, u.Breakers)
	return t.Flush()
}

func printBreakers(w io.Writer, breakers []Breaker) {
	if len(breakers) > 0 {
		fmt.Fprintln(w, "  BREAKER\tSTATE\tREASON\tFAILURES\tNEXT PROBE IN")
	}
	for _, b := range breakers {
		state := b.State
		if b.Forced {
			state += " (forced)"
		}
		again := zero(b.WaitMS, "-")
		if b.WaitMS < 0 {
			again = "never"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%s\n", dash(b.Key), state, dash(b.Why), b.Failures, again)
	}
}

// PrintPauses writes the pauses of an upstream as a table.
func PrintPauses(w io.Writer, u Upstream) error {
	if u.PausesInAll == 0 {
		_, err := fmt.Fprintf(w, "%s has no pauses\n", u.Name)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, u.Name)
	printPauses(t, u.Pauses, u.PausesInAll)
	return t.Flush()
}

func printPauses(w io.Writer, pauses []Pause, all int) {
	if len(pauses) > 0 {
		fmt.Fprintln(w, "  PAUSED\tREASON\tFOR\tFIRST PROCESS")
	}
	for _, p := range pauses {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Whom(), p.Reason, p.Long(), dash(p.By))
	}
	if more := all - len(pauses); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}

// Long describes how long the pause lasts.
func (p *Pause) Long() string {
	long := ms(p.LeftMS).String()
	if p.LeftMS < 0 {
		long = "until it is resumed"
	}
	if !p.ResetAt.IsZero() {
		long += ", " + p.ResetAt.Format(time.RFC3339)
	}
	return long
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func zero(millis int64, none string) string {
	if millis <= 0 {
		return none
	}
	return ms(millis).String()
}

func ms(n int64) time.Duration {
	d := time.Duration(n) * time.Millisecond
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d
}
