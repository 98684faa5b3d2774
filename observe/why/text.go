package why

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// Text returns the call as readable text: its result, each attempt, the state of the limits, and what to change.
func (c *Call) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", c.ID, c.Headline())
	fmt.Fprintf(&b, "  ended at %s, %s after its start\n", c.At.UTC().Format("2006-01-02T15:04:05.000Z"), Span(c.TookMS))
	if c.Weir != "" {
		fmt.Fprintf(&b, "  handled by process %s\n", c.Weir)
	}
	if c.Key != "" {
		fmt.Fprintf(&b, "  key: %s\n", c.Key)
	}
	if c.Why != "" {
		fmt.Fprintf(&b, "  %s: %s\n", c.WhyLabel(), c.Why)
	}
	if c.StaleMS > 0 {
		fmt.Fprintf(&b, "  the caller got an earlier answer, %s old (stale_if_error)\n", Span(c.StaleMS))
	}
	c.attempts(&b)
	c.limits(&b)
	if len(c.Change) > 0 {
		b.WriteString("\n  What you can change:\n")
	}
	for _, x := range c.Change {
		at := x.Field
		if x.At != "" {
			at += " (" + x.At + ")"
		}
		if at != "" {
			at += ": "
		}
		fmt.Fprintf(&b, "  - %s%s\n", at, x.Say)
	}
	return b.String()
}

// WhyLabel returns what Why explains: of a failed call, why it was not repeated.
func (c *Call) WhyLabel() string {
	if c.Kind == Failed {
		return "no further attempt"
	}
	return "cause"
}

// Headline returns the result of the call in one line.
func (c *Call) Headline() string {
	what := strings.TrimSpace(c.Upstream + " " + c.Operation)
	switch {
	case c.Kind == Refused && c.made() > 0:
		return fmt.Sprintf("%s: %s after %s, then refused by weir: %s", what, c.Class, attempts(c.made()), c.Reason)
	case c.Kind == Refused:
		return fmt.Sprintf("%s: refused by weir: %s", what, c.Reason)
	case c.Kind == Failed:
		return fmt.Sprintf("%s: %s after %s", what, c.Class, attempts(c.made()))
	}
	return fmt.Sprintf("%s: %s", what, c.Class)
}

// made returns how many attempts reached the upstream, or may have.
func (c *Call) made() (n int) {
	for _, a := range c.Attempts {
		if n = a.N; a.Reason != "" {
			n--
		}
	}
	return n
}

func (c *Call) attempts(b *strings.Builder) {
	if len(c.Attempts) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	before := 0
	for _, a := range c.Attempts {
		if a.N > before+1 {
			fmt.Fprintf(w, "  %s not recorded\t\t\n", attempts(a.N-before-1))
		}
		before = a.N
		fmt.Fprintf(w, "  attempt %d\t%s\t%s\n", a.N, a.Before(), a.End())
	}
	_ = w.Flush() // a Builder accepts everything
	if c.HeldBack > 0 {
		fmt.Fprintf(b, "  %s skipped, because no call succeeded at that time\n", attempts(c.HeldBack))
	}
}

// Before returns what the attempt waited for, in words.
func (a *Attempt) Before() string {
	var parts []string
	if a.RestedMS > 0 {
		parts = append(parts, Span(a.RestedMS)+" after the previous attempt")
	}
	if a.WaitedMS > 0 {
		parts = append(parts, "waited "+Span(a.WaitedMS)+" for its turn"+in(" in limit ", a.Limit))
	}
	if len(parts) == 0 {
		return "immediately"
	}
	return strings.Join(parts, ", ")
}

// End returns how the attempt ended, in words.
func (a *Attempt) End() string {
	var s string
	if a.Reason != "" {
		s = "refused: " + a.Reason + in(" by limit ", a.Limit)
	} else if s = a.Class; a.Code != "" {
		s += " (" + a.Code + ")"
	}
	if a.TookMS > 0 {
		s += " in " + Span(a.TookMS)
	}
	if a.HintMS > 0 {
		if a.Reason != "" {
			s += ", retry after " + Span(a.HintMS)
		} else {
			s += ", and the upstream asked to wait " + Span(a.HintMS)
		}
	}
	return s
}

// in returns the words before a limit and its name, or nothing if there is no limit.
func in(words, limit string) string {
	if limit == "" {
		return ""
	}
	return words + limit
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func (c *Call) limits(b *strings.Builder) {
	if len(c.Limits) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, l := range c.Limits {
		mark, name := " ", l.Name
		if l.Refused {
			mark = "*"
		}
		if l.Key != "" {
			name += " of " + l.Key
		}
		paused := ""
		if l.PausedMS != 0 {
			paused = ", paused for " + Span(l.PausedMS)
		}
		fmt.Fprintf(w, "%s limit %s\t%s\tcost %s, left %s%s\t%s\n", mark, name, l.Rule, l.Costs(), l.Remaining(), paused, l.At)
	}
	_ = w.Flush()
}

// Span returns a duration in milliseconds, in words. A negative one has no end.
func Span(ms float64) string {
	if ms < 0 {
		return "no end"
	}
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}
