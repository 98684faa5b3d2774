package demo

import (
	"fmt"
	"strings"
)

// table is a result side by side, for people.
func table(r Result) string {
	var b strings.Builder
	row := func(name string, cell func(Score) string) {
		fmt.Fprintf(&b, "%-26s%18s%18s\n", name, cell(r.Direct), cell(r.Weir))
	}
	fmt.Fprintf(&b, "\n%-26s%18s%18s\n", "", "directly", "through weir")
	row("calls", func(s Score) string { return fmt.Sprint(s.Calls) })
	row("attempts sent", func(s Score) string { return fmt.Sprint(s.Attempts) })
	row("  for each call", func(s Score) string { return fmt.Sprintf("%.2f", ratio(s.Attempts, s.Calls)) })
	row("refused by the upstream", func(s Score) string { return counted(s.Refused, s.Attempts) })
	row("failed in the outage", func(s Score) string { return fmt.Sprint(s.Failed) })
	row("calls held back", func(s Score) string { return fmt.Sprint(s.Away) })
	row("calls that succeeded", func(s Score) string { return counted(s.Succeeded, s.Calls) })
	row("  before the outage", func(s Score) string { return percent(s.Before) })
	row("time to recover", func(s Score) string { return orNever(s.RecoveredMS) })
	row("p50", func(s Score) string { return fmt.Sprintf("%.0f ms", s.P50) })
	row("p99", func(s Score) string { return fmt.Sprintf("%.0f ms", s.P99) })
	b.WriteString(legend)
	return b.String()
}

const legend = `
Held back: refused by weir at once, because the upstream was down.
Time to recover: from the end of the outage to the first second in which 99%
of the calls that end succeed. p50, p99: of calls that succeeded, from when
they were due; through weir that holds the wait for their turn.
`

func counted[N, M int | int64](n N, of M) string {
	return fmt.Sprintf("%d (%s)", n, percent(ratio(n, of)))
}

func ratio[N, M int | int64](n N, of M) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func orNever(ms *int64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%d ms", *ms)
}
