package play

import (
	"fmt"
	"strings"
)

// A figure is a row of a table. Its name is indented if it is a part of the figure above.
type figure struct {
	name string
	of   func(*Score) string
}

// figures returns the figures of a story, both ways.
func (s *Story) figures(direct, through *Score) []figure {
	all := []figure{{"calls answered", func(x *Score) string { return fmt.Sprintf("%d (%s)", x.Good, percent(x.Answered)) }}}
	add := func(name string, of func(*Score) string) { all = append(all, figure{name, of}) }
	if s.has(Flood) {
		add("  of the other tenants, from then", func(x *Score) string { return percent(x.Quiet) })
		add("  of the tenant that floods", func(x *Score) string { return percent(x.Tenants[Tenants[noisy]]) })
	}
	add("attempts sent", func(x *Score) string { return fmt.Sprint(x.Sent) })
	if direct.Throttled+through.Throttled > 0 {
		add("  throttled by the upstream", func(x *Score) string { return percent(ratio(x.Throttled, x.Sent)) })
	}
	if through.Refused > 0 {
		add("attempts refused by weir", func(x *Score) string { return fmt.Sprint(x.Refused) })
	}
	add("work done for callers that had left", func(x *Score) string {
		return fmt.Sprintf("%d (%s)", x.Wasted, percent(ratio(x.Wasted, x.Useful+x.Wasted)))
	})
	add("99% of calls answered again after", func(x *Score) string { return s.recovery(x.RecoveredMS) })
	add("median time to answer", func(x *Score) string { return fmt.Sprintf("%.0f ms", x.P50) })
	return all
}

// fleetFigures returns the figures of a story with several processes.
func (s *Story) fleetFigures() []figure {
	return []figure{
		{"calls answered before the trouble", func(x *Score) string { return percent(x.Before) }},
		{"calls answered in total", func(x *Score) string { return fmt.Sprintf("%d (%s)", x.Good, percent(x.Answered)) }},
		{"attempts sent", func(x *Score) string { return fmt.Sprint(x.Sent) }},
		{"maximum attempts beyond the limit", func(x *Score) string { return fmt.Sprint(x.Fleet.Over) }},
		{"maximum store requests per second, before trouble", func(x *Score) string { return fmt.Sprint(x.Fleet.RequestsBefore) }},
		{"maximum store requests per second, after trouble", func(x *Score) string { return fmt.Sprint(x.Fleet.RequestsAfter) }},
		{"time until 99% of calls are answered again", func(x *Score) string { return s.recovery(x.RecoveredMS) }},
	}
}

// Table returns the figures of a story, both ways side by side.
func (s *Story) Table(direct, through *Score) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-34s%16s%20s\n", "", "directly", "through weir")
	for _, f := range s.figures(direct, through) {
		fmt.Fprintf(&b, "%-34s%16s%20s\n", f.name, f.of(direct), f.of(through))
	}
	return b.String()
}

func ratio(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*max(0, share)) }

// recovery describes when the story recovered. A live story is too short to print never.
func (s *Story) recovery(ms *int64) string {
	_, to := s.trouble()
	switch {
	case ms != nil:
		return fmt.Sprintf("%.1f s", float64(*ms)/1000)
	case s.Live:
		return fmt.Sprintf("not in %.0f s", (s.Length - to).Seconds())
	}
	return "never"
}
