package board

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/webpage"
)

// Sizes of a plot in its own units. It is stretched to the available width.
const (
	plotHeight = 40
	stripe     = 4 // height of failed attempts, and of the breaker, at the bottom
)

// A layer is one color of a plot: a class, and its height at a sample.
type layer struct {
	class markup
	at    func(*sample) uint64
}

// Layers of decisions, from back to front: each covers the lower part of the one behind it.
var decided = []layer{
	{"refused", func(s *sample) uint64 { return s.allowed + s.waited + s.refused }},
	{"waited", func(s *sample) uint64 { return s.allowed + s.waited }},
	{"allowed", func(s *sample) uint64 { return s.allowed }},
}

// Layers of failed and throttled attempts.
var attempted = []layer{
	{"failed", func(s *sample) uint64 { return s.failed + s.throttled }},
	{"throttled", func(s *sample) uint64 { return s.throttled }},
}

// legend explains the colors of all plots and labels the time axis.
const legend markup = `<div class="heads"><p class="legend">Last 15 minutes: <span class="key"><i class="allowed"></i>allowed</span> <span class="key"><i class="waited"></i>waited</span> <span class="key"><i class="throttled"></i>throttled by the upstream</span> <span class="key"><i class="failed"></i>failed</span> <span class="key"><i class="refused"></i>refused by weir</span> <span class="key"><i class="half"></i>breaker half-open</span> <span class="key"><i class="open"></i>breaker open</span></p>
<p class="columns" aria-hidden="true"><span>Upstream</span><span>State</span><span>allowed</span><span>waited</span><span>throttled</span><span>failed</span><span>refused</span><span>p50</span><span>p99</span><span>limit left</span>` + axis + `</p></div>`

// axis labels the time of a plot, with a label at each line that the style sheet draws.
const axis markup = `<span class="axis" aria-hidden="true"><span>15 min ago</span><span>10</span><span>5</span><span>now</span></span>`

// plot draws allowed, waited and refused calls, stacked. Below them, on the same axis, are failed attempts and the
// times at which a breaker was not closed. The figures beside the plot show the latest sample.
func plot(all []sample) markup {
	if all == nil {
		return ""
	}
	most := highest(all, decided)
	peak := per(float64(most) / step.Seconds())
	var b strings.Builder
	fmt.Fprintf(&b, `<span class="trend"><svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="calls in the last %s, at most %s/s">`,
		len(all), plotHeight, minutes(step*kept), peak)
	areas(&b, all, decided, most, plotHeight-2*stripe)
	stripes(&b, all, plotHeight-stripe, []mark{
		{"failed", func(s *sample) bool { return s.failed > 0 }}, {"throttled", func(s *sample) bool { return s.throttled > 0 && s.failed == 0 }},
	})
	stripes(&b, all, plotHeight, phaseMarks)
	fmt.Fprintf(&b, `</svg><span class="peak">max %s/s</span></span>%s`, peak, axis)
	return markup(b.String()) // numbers, and constants of this file
}

// chart draws the same in detail: decisions, failed attempts and the breaker in three lanes on one time axis.
func chart(all []sample) markup {
	if all == nil {
		return `<p>No call was made in the last 15 minutes.</p>`
	}
	var b strings.Builder
	b.WriteString(`<div class="chart">`)
	lane := func(head string, of []layer) {
		most := highest(all, of)
		peak := per(float64(most) / step.Seconds())
		fmt.Fprintf(&b, `<p>%s</p><div class="trend"><svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="at most %s/s">`, head, len(all), plotHeight, peak)
		areas(&b, all, of, most, plotHeight)
		fmt.Fprintf(&b, `</svg><span class="peak">max %s/s</span></div>`, peak)
	}
	lane(`Calls: <span class="key"><i class="allowed"></i>allowed</span> <span class="key"><i class="waited"></i>allowed after a wait</span> <span class="key"><i class="refused"></i>refused by weir</span>`, decided)
	lane(`Unsuccessful attempts: <span class="key"><i class="throttled"></i>throttled by the upstream</span> <span class="key"><i class="failed"></i>failed</span>`, attempted)
	fmt.Fprintf(&b, `<p>Breaker: <span class="key"><i class="open"></i>open</span> <span class="key"><i class="half"></i>half-open</span></p><svg class="plot low" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, len(all), stripe)
	stripes(&b, all, stripe, phaseMarks)
	b.WriteString("</svg>" + string(axis) + "</div>")
	return markup(b.String()) // numbers, and constants of this file
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }

// A mark is one color of a stripe: a class, and whether it is drawn at a sample.
type mark struct {
	class markup
	at    func(*sample) bool
}

// phaseMarks are the marks of a breaker. Half-open covers open where a step has both.
var phaseMarks = []mark{
	{"open", func(s *sample) bool { return s.phases.open }},
	{"half", func(s *sample) bool { return s.phases.probed }},
}

// highest returns the maximum of the first layer over all samples; at least 1.
func highest(all []sample, of []layer) uint64 {
	most := uint64(1)
	for i := range all {
		most = max(most, of[0].at(&all[i]))
	}
	return most
}

// areas draws layers, scaled so that most has the full height.
func areas(b *strings.Builder, all []sample, of []layer, most uint64, height int) {
	for _, l := range of {
		webpage.Area(b, l.class, len(all), height, func(i int) int { return int(uint64(height) * l.at(&all[i]) / most) })
	}
}

// stripes draws marks as stripes of one height, and half as high where an earlier mark is also drawn.
func stripes(b *strings.Builder, all []sample, bottom int, marks []mark) {
	for i, m := range marks {
		webpage.Area(b, m.class, len(all), bottom, func(x int) int {
			switch s := &all[x]; {
			case !m.at(s):
				return 0
			case i > 0 && marks[0].at(s):
				return stripe / 2
			}
			return stripe
		})
	}
}

// span formats a duration with three digits.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return fmt.Sprintf("%.3gms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%.3gs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// per formats a number per second.
func per(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 1000:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", n)
}
