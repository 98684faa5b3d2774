package play

import (
	"fmt"
	"strings"
)

// Table returns the figures of a story, both ways side by side.
func (s *Story) Table(direct, through *Score) string {
	var b strings.Builder
	b.WriteString("\n")
	row := func(name string, cell func(*Score) string) {
		fmt.Fprintf(&b, "%-34s%16s%20s\n", name, cell(direct), cell(through))
	}
	row("", func(x *Score) string {
		if x == direct {
			return "directly"
		}
		return "through weir"
	})
	row("calls answered", func(x *Score) string { return fmt.Sprintf("%d (%s)", x.Good, percent(x.Answered)) })
	if s.has(Flood) {
		row("  of the other tenants, from then", func(x *Score) string { return percent(x.Quiet) })
		row("  of the tenant that floods", func(x *Score) string { return percent(x.Tenants[Tenants[noisy]]) })
	}
	row("attempts sent", func(x *Score) string { return fmt.Sprint(x.Sent) })
	if direct.Throttled+through.Throttled > 0 {
		row("  throttled by the upstream", func(x *Score) string { return percent(ratio(x.Throttled, x.Sent)) })
	}
	row("work done for callers that had left", func(x *Score) string {
		return fmt.Sprintf("%d (%s)", x.Wasted, percent(ratio(x.Wasted, x.Useful+x.Wasted)))
	})
	row("99% of calls answered again after", func(x *Score) string { return s.recovery(x.RecoveredMS) })
	row("median time to answer", func(x *Score) string { return fmt.Sprintf("%.0f ms", x.P50) })
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
