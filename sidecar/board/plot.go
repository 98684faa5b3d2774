package board

import (
	"fmt"
	"strings"
	"time"
)

// Sizes of a plot, in its own units: it is drawn as wide as there is room.
const (
	plotHeight = 40
	stripe     = 4 // of the breaker, at the bottom
)

// A layer is one colour of a plot: a class, and how high it is at a sample.
type layer struct {
	class string
	at    func(*sample) uint64
}

// Layers of what was decided, those behind first: each hides the lower part of the one behind it.
var decided = []layer{
	{"refused", func(s *sample) uint64 { return s.allowed + s.waited + s.refused }},
	{"waited", func(s *sample) uint64 { return s.allowed + s.waited }},
	{"allowed", func(s *sample) uint64 { return s.allowed }},
}

// Layers of how attempts went wrong.
var attempted = []layer{
	{"failed", func(s *sample) uint64 { return s.failed + s.throttled }},
	{"throttled", func(s *sample) uint64 { return s.throttled }},
}

// plot draws what an upstream did of late: allowed, waited and refused one above the other, and below them, on the same
// axis, when a breaker was not closed. It is decoration of the figures beside it, which say the latest of the same.
func plot(all []sample) markup {
	if all == nil {
		return ""
	}
	most := highest(all, decided)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="the last %v, at most %s/s">`,
		len(all), plotHeight, step*kept, per(float64(most)/step.Seconds()))
	areas(&b, all, decided, most, plotHeight-stripe)
	stripes(&b, all, plotHeight-stripe, stripe)
	b.WriteString("</svg>")
	return markup(b.String()) // numbers, and words of this file
}

// chart is the same with room: what was decided, how attempts went wrong, and the breaker, one below the other on one axis of time.
func chart(all []sample) markup {
	if all == nil {
		return `<p>It did nothing of late.</p>`
	}
	var b strings.Builder
	b.WriteString(`<div class="chart">`)
	lane := func(head string, of []layer) {
		most := highest(all, of)
		fmt.Fprintf(&b, `<p>%s, at most %s/s</p><svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, head, per(float64(most)/step.Seconds()), len(all), plotHeight)
		areas(&b, all, of, most, plotHeight)
		b.WriteString("</svg>")
	}
	lane(`Decisions: <i class="allowed"></i>allowed <i class="waited"></i>after a wait <i class="refused"></i>refused`, decided)
	lane(`Attempts that went wrong: <i class="throttled"></i>throttled by the upstream <i class="failed"></i>failed`, attempted)
	fmt.Fprintf(&b, `<p>Breaker: <i class="open"></i>open <i class="half"></i>half-open</p><svg class="plot low" viewBox="0 0 %d 2" preserveAspectRatio="none" aria-hidden="true">`, len(all))
	stripes(&b, all, 0, 2)
	b.WriteString("</svg>")
	length := step * kept
	fmt.Fprintf(&b, `<p class="axis"><span>%s ago</span><span>%s</span><span>%s</span><span>now</span></p></div>`, minutes(length), minutes(length*2/3), minutes(length/3))
	return markup(b.String()) // numbers, and words of this file
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d min", int(d.Minutes())) }

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

// stripes draws when breakers were open, and, less high, when they were half-open: a step may have both.
func stripes(b *strings.Builder, all []sample, top, height int) {
	when := func(is bool, high int) int {
		if is {
			return high
		}
		return 0
	}
	area(b, "open", all, top+height, func(s *sample) int { return when(s.phases.open, height) })
	area(b, "half", all, top+height, func(s *sample) int { return when(s.phases.probed, height/2) })
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

// sign is a sign beside the word for a state, for those who do not tell the colours apart.
func sign(state string) string {
	return map[string]string{"ok": "●", "waits": "◔", "refuses": "▲", "paused": "❚❚", "half-open": "◐", "open": "■", "trouble": "✖", "closed": "●"}[state]
}
