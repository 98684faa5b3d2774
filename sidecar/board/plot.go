package board

import (
	"fmt"
	"strings"
	"time"
)

// Sizes of a plot, in its own units: it is drawn as wide as there is room.
const (
	plotHeight = 40
	stripe     = 4 // of attempts that went wrong, and of the breaker, at the bottom
)

// A layer is one color of a plot: a class, and how high it is at a sample.
type layer struct {
	class string
	at    func(*sample) uint64
}

// Layers of decisions, those behind first: each hides the lower part of the one behind it.
var decided = []layer{
	{"refused", func(s *sample) uint64 { return s.allowed + s.waited + s.refused }},
	{"waited", func(s *sample) uint64 { return s.allowed + s.waited }},
	{"allowed", func(s *sample) uint64 { return s.allowed }},
}

// Layers of attempts that went wrong.
var attempted = []layer{
	{"failed", func(s *sample) uint64 { return s.failed + s.throttled }},
	{"throttled", func(s *sample) uint64 { return s.throttled }},
}

// legend names the colors of all plots, and the axis of those that stand side by side.
const legend markup = `<div class="heads"><p class="legend">Last 15 minutes: <span class="key"><i class="allowed"></i>allowed</span> <span class="key"><i class="waited"></i>waited</span> <span class="key"><i class="throttled"></i>throttled by the upstream</span> <span class="key"><i class="failed"></i>failed</span> <span class="key"><i class="refused"></i>refused by weir</span> <span class="key"><i class="half"></i>breaker half-open</span> <span class="key"><i class="open"></i>breaker open</span></p>
<p class="columns" aria-hidden="true"><span>Upstream</span><span>State</span><span>allowed</span><span>waited</span><span>throttled</span><span>failed</span><span>refused</span><span>p50</span><span>p99</span><span>limit left</span>` + axis + `</p></div>`

// axis labels the time of a plot. It has a label at each of the lines that the style draws.
const axis markup = `<span class="axis" aria-hidden="true"><span>15 min ago</span><span>10</span><span>5</span><span>now</span></span>`

// plot draws what an upstream did: allowed, waited and refused calls one above the other, and below them, on the same
// axis, when attempts went wrong and when a breaker was not closed. The figures beside it contain the latest of the same.
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
	return markup(b.String()) // numbers, and words of this file
}

// chart is the same with room: decisions, attempts that went wrong, and the breaker, one below the other on one axis of time.
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
	lane(`Attempts that went wrong: <span class="key"><i class="throttled"></i>throttled by the upstream</span> <span class="key"><i class="failed"></i>failed</span>`, attempted)
	fmt.Fprintf(&b, `<p>Breaker: <span class="key"><i class="open"></i>open</span> <span class="key"><i class="half"></i>half-open</span></p><svg class="plot low" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, len(all), stripe)
	stripes(&b, all, stripe, phaseMarks)
	b.WriteString("</svg>" + string(axis) + "</div>")
	return markup(b.String()) // numbers, and words of this file
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }

// A mark is one color of a stripe: a class, and whether it is drawn at a sample.
type mark struct {
	class string
	at    func(*sample) bool
}

// phaseMarks are those of a breaker. Half-open covers open where a step has both.
var phaseMarks = []mark{
	{"open", func(s *sample) bool { return s.phases.open }},
	{"half", func(s *sample) bool { return s.phases.probed }},
}

// highest is the most of a layer at any sample; at least 1.
func highest(all []sample, of []layer) uint64 {
	most := uint64(1)
	for i := range all {
		most = max(most, of[0].at(&all[i]))
	}
	return most
}

// areas draws layers, most of them as high as there is room.
func areas(b *strings.Builder, all []sample, of []layer, most uint64, height int) {
	for _, l := range of {
		area(b, l.class, all, height, func(s *sample) int { return int(uint64(height) * l.at(s) / most) })
	}
}

// stripes draws marks as stripes of one height, and half as high where an earlier one is drawn too.
func stripes(b *strings.Builder, all []sample, bottom int, marks []mark) {
	for i, m := range marks {
		area(b, m.class, all, bottom, func(s *sample) int {
			switch {
			case !m.at(s):
				return 0
			case i > 0 && marks[0].at(s):
				return stripe / 2
			}
			return stripe
		})
	}
}

// area fills what is below a line of steps, if there is anything. Samples of one height are one step.
func area(b *strings.Builder, class string, all []sample, bottom int, high func(*sample) int) {
	at, begun := 0, 0 // height of the line, and where its step began
	drawn := false
	for x := range all {
		h := high(&all[x])
		if h == at {
			continue
		}
		if !drawn {
			fmt.Fprintf(b, `<path class="%s" d="M%d %d`, class, x, bottom)
			drawn, begun = true, x
		}
		if x > begun {
			fmt.Fprintf(b, "h%d", x-begun)
		}
		fmt.Fprintf(b, "v%d", at-h)
		at, begun = h, x
	}
	if drawn {
		if at > 0 {
			fmt.Fprintf(b, "h%dV%d", len(all)-begun, bottom)
		}
		b.WriteString(`z"/>`)
	}
}

// span is a duration for people: three figures are enough.
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

// per is so many a second, for people.
func per(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 1000:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", n)
}

// signs stand before the word of a state, so that nobody depends on its color. Each is one symbol: the style colors the first letter.
var signs = map[string]string{
	"ok": "●", "waiting": "◔", "throttled": "▼", "failing": "✚", "refusing": "▲", "paused": "◆", "half-open": "◐", "open": "■", "trouble": "✖", "closed": "●",
}

func sign(state string) string {
	return signs[state]
}
