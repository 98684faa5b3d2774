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

// plot draws what an upstream did of late: allowed, waited and refused one above the other, and below them, on the same
// axis, when a breaker was not closed. It is decoration of the figures beside it, which say the latest of the same.
func plot(all []sample) markup {
	if all == nil {
		return ""
	}
	most := uint64(1)
	for _, s := range all {
		most = max(most, s.allowed+s.waited+s.refused)
	}
	y := func(n uint64) int { return int((plotHeight - stripe) * (most - n) / most) }
	var allowed, waited, refused, open strings.Builder
	for x := range all {
		s := &all[x]
		bar(&allowed, x, y(0), y(s.allowed))
		bar(&waited, x, y(s.allowed), y(s.allowed+s.waited))
		bar(&refused, x, y(s.allowed+s.waited), y(s.allowed+s.waited+s.refused))
		if s.open {
			bar(&open, x, plotHeight, plotHeight-stripe)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="the last %v, at most %s/s">`,
		len(all), plotHeight, step*kept, per(float64(most)/step.Seconds()))
	for _, part := range []struct{ class, d string }{{"allowed", allowed.String()}, {"waited", waited.String()}, {"refused", refused.String()}, {"open", open.String()}} {
		if part.d != "" {
			fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, part.class, part.d)
		}
	}
	b.WriteString("</svg>")
	return markup(b.String()) // numbers, and words of this file
}

// bar draws one sample of one part.
func bar(b *strings.Builder, x, bottom, top int) {
	if top < bottom {
		fmt.Fprintf(b, "M%d %dV%dh1V%d", x, bottom, top, bottom)
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
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3g", n)
}

// sign is a sign beside the word for a state, for those who do not tell the colours apart.
func sign(state string) string {
	return map[string]string{"ok": "●", "waits": "◔", "refuses": "▲", "paused": "❚❚", "half-open": "◐", "open": "■", "trouble": "✖", "closed": "●"}[state]
}
