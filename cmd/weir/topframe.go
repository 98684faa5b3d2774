package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// plainWidth is the width of lines without a terminal.
const plainWidth = 100

// stateColours are terminal colors of states. The text of a state also shows whether it is bad.
var stateColours = map[string]int{"ok": 32, "waiting": 33, "throttled": 33, "failing": 31, "refusing": 33, "half-open": 33, "paused": 35, "open": 31, "trouble": 31}

// A line is a text and its style.
type line struct {
	text   string
	colour int // 0 means none
	bold   bool
	head   bool // inverted
}

// plain returns the complete view as text.
func (t *top) plain() string {
	t.width = plainWidth
	var b strings.Builder
	for _, l := range slices.Concat(t.above(), t.below(t.rows())) {
		b.WriteString(strings.TrimRight(fit(l.text, t.width), " ") + "\n")
	}
	return b.String()
}

// frame returns the sequences that draw the screen. It redraws every line, to remove earlier frames completely.
func (t *top) frame() string {
	if t.width <= 0 || t.height <= 0 {
		return ""
	}
	lines := t.lines()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, l := range lines[:min(len(lines), t.height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(t.dressed(l) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// dressed returns a line with its colors, filled to the width of the screen.
func (t *top) dressed(l line) string {
	text := fit(l.text, t.width)
	var how []string
	if l.bold || l.head {
		how = append(how, "1")
	}
	if l.head {
		how = append(how, "7")
		text += strings.Repeat(" ", max(0, t.width-len([]rune(text))))
	}
	if l.colour > 0 && !t.plainly {
		how = append(how, fmt.Sprint(l.colour))
	}
	if how == nil {
		return text
	}
	return "\x1b[" + strings.Join(how, ";") + "m" + text + "\x1b[0m"
}

// lines returns the lines of the screen, as many as fit.
func (t *top) lines() []line {
	foot := line{text: fmt.Sprintf("q quit  / filter%s  s sort: %s  j k scroll", bracketed(t.filter), t.sort)}
	if t.typing {
		foot = line{text: "filter: " + t.typed + "_   enter applies it, escape cancels", bold: true}
	}
	if t.view == nil {
		text := "connecting..."
		if t.err != nil {
			text = t.err.Error()
		}
		return []line{{text: text, bold: t.err != nil}, foot}
	}
	above, rows := t.above(), t.rows()
	t.skip = min(t.skip, max(0, len(rows)-1))
	below := t.below(rows[t.skip:])
	room := max(1, t.height-len(above)-1)
	if len(below) > room {
		below = below[:room]
	}
	for len(below) < room {
		below = append(below, line{})
	}
	return slices.Concat(above, below, []line{foot})
}

func bracketed(filter string) string {
	if filter == "" {
		return ""
	}
	return " (" + filter + ")"
}

// above returns the lines above the upstreams.
func (t *top) above() (all []line) {
	v := t.view
	said := fmt.Sprintf("weir %s  up %v  %s", v.Version, v.At.Sub(v.Started).Round(time.Second), plural(v.Known, "upstream"))
	if v.Draining {
		said += "  DRAINING"
	}
	if v.Open > 0 {
		said += fmt.Sprintf("  %s not closed", plural(v.Open, "breaker"))
	}
	if v.Paused > 0 {
		said += fmt.Sprintf("  %d paused", v.Paused)
	}
	all = append(all, line{text: said, bold: true})
	all = append(all, line{text: fmt.Sprintf("allowed %s/s  waited %s/s  refused %s/s  throttled upstream %s/s  failed %s/s", rate(v.Allowed), rate(v.Waited), rate(v.Refused), rate(v.Throttled), rate(v.Failed))})
	if t.err != nil {
		all = append(all, line{text: fmt.Sprintf("as of %s: %v", v.At.Local().Format(time.TimeOnly), t.err), colour: 31, bold: true})
	}
	for _, x := range v.Troubles {
		all = append(all, line{text: fmt.Sprintf("PROBLEM with %s: %s; %s", x.With, x.Error, x.Help), colour: 31, bold: true})
	}
	if v.Config != nil && v.Config.Error != "" {
		all = append(all, line{text: "RELOAD FAILED: " + v.Config.Error, colour: 31, bold: true})
	}
	if f := v.Fleet; f != nil {
		l := line{text: fmt.Sprintf("fleet of %d through %s", f.Instances, f.Store)}
		if f.AwayMS > 0 {
			l = line{text: l.text + fmt.Sprintf(", which has not answered for %v: %s", (time.Duration(f.AwayMS)*time.Millisecond).Round(time.Second), f.Why), colour: 31, bold: true}
		}
		all = append(all, l)
	}
	return append(all, lettersOf(v.Deliveries)...)
}

// lettersOf returns lines about the deliveries of all upstreams.
func lettersOf(d *status.Deliveries) []line {
	if d == nil {
		return nil
	}
	if d.Error != "" {
		return []line{{text: "deliveries: unknown, the store does not answer: " + d.Error, colour: 31}}
	}
	var sum status.Letters
	for _, l := range d.Upstreams {
		sum.Waiting, sum.Processing, sum.Completed, sum.Failed = sum.Waiting+l.Waiting, sum.Processing+l.Processing, sum.Completed+l.Completed, sum.Failed+l.Failed
	}
	l := line{text: fmt.Sprintf("deliveries: %d waiting, %d in flight, %d delivered, %s", sum.Waiting, sum.Processing, sum.Completed, plural(int(sum.Failed), "dead letter"))}
	if sum.Failed > 0 {
		l.colour = 33
	}
	return []line{l}
}

// below returns the table of upstreams.
func (t *top) below(rows []*board.Row) []line {
	name := max(8, t.width-61) // the width that the other columns leave
	head := fmt.Sprintf("%-*s %-9s %7s %6s %8s %4s %5s %7s %7s", name, "UPSTREAM", "STATE", "ALLOW/s", "WAIT/s", "REFUSE/s", "LEFT", "WAIT", "P50", "P99")
	all := []line{{text: head, head: true}}
	if len(rows) == 0 {
		all = append(all, line{text: "no upstream matches the filter"})
	}
	for _, r := range rows {
		left := "-"
		if r.Least >= 0 {
			left = fmt.Sprintf("%d%%", r.Least)
		}
		text := fmt.Sprintf("%-*s %-9s %7s %6s %8s %4s %5d %7s %7s", name, fit(r.Name, name), r.State, rate(r.Allowed), rate(r.Waited), rate(r.Refused), left, r.Waiting, long(r.P50MS), long(r.P99MS))
		all = append(all, line{text: text, colour: stateColours[r.State], bold: r.State != "ok"})
		for _, said := range about(r) {
			all = append(all, line{text: "  " + said})
		}
	}
	if t.view.Hidden > 0 {
		all = append(all, line{text: fmt.Sprintf("and %d more in a better state or with fewer calls: filter with /", t.view.Hidden)})
	}
	return all
}

// about returns details of an upstream in addition to its figures.
func about(r *board.Row) (all []string) {
	if len(r.By) > 0 {
		var reasons []weir.Reason
		for why := range r.By {
			reasons = append(reasons, why)
		}
		slices.SortFunc(reasons, func(a, b weir.Reason) int { return cmp.Or(cmp.Compare(r.By[b], r.By[a]), cmp.Compare(a, b)) })
		var said []string
		for _, why := range reasons {
			said = append(said, fmt.Sprintf("%s %s/s", why, rate(r.By[why])))
		}
		all = append(all, "refused: "+strings.Join(said, ", "))
	}
	for _, b := range r.Breakers {
		if b.State != "closed" {
			all = append(all, breakerSays(&b))
		}
	}
	for i, p := range r.Pauses {
		if i == 3 {
			all = append(all, fmt.Sprintf("and %d more pauses", max(len(r.Pauses), r.PausesInAll)-i))
			break
		}
		all = append(all, fmt.Sprintf("paused: %s, %s, %s", p.Whom(), p.Reason, p.Long()))
	}
	if m := r.Model; m != nil {
		for _, tier := range m.Tiers {
			all = append(all, fmt.Sprintf("tier %s: %s, answered %d, failed %d, skipped %d, latency %s", tier.Name, tier.State, tier.Answered, tier.Failed, tier.Skipped, long(float64(tier.TakesMS))))
		}
		all = append(all, tokensOf(r)...)
	}
	return all
}

// tokensOf returns the remaining units of a model's token limits.
func tokensOf(r *board.Row) (all []string) {
	for i := range r.Limits {
		if l := &r.Limits[i]; l.Unit == "tokens" && l.Key == "" {
			all = append(all, fmt.Sprintf("tokens %s: %d of %d remaining, %s", l.Name, l.Left, l.Full, l.Rule))
		}
	}
	return all
}

func breakerSays(b *status.Breaker) string {
	said := "breaker " + strings.TrimSpace(b.Key+" "+b.State)
	if b.Forced {
		said += " by an operator"
	} else if b.Why != "" {
		said += ": " + b.Why
	}
	switch {
	case b.WaitMS < 0:
		said += ", until it is reset"
	case b.WaitMS > 0:
		said += fmt.Sprintf(", next probe in %s", long(float64(b.WaitMS)))
	}
	return said
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rate formats a rate per second in at most seven characters.
func rate(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 1000:
		return fmt.Sprintf("%.3g", n)
	case n < 1e6:
		return fmt.Sprintf("%.4gk", n/1000)
	}
	return fmt.Sprintf("%.4gM", n/1e6)
}

// long formats milliseconds for people.
func long(ms float64) string {
	switch {
	case ms <= 0:
		return "-"
	case ms < 1000:
		return fmt.Sprintf("%.3gms", ms)
	case ms < 60e3:
		return fmt.Sprintf("%.3gs", ms/1000)
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

// fit shortens or fills a text to a width. It replaces control characters, which a terminal would interpret.
func fit(text string, width int) string {
	all := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
	if len(all) <= width {
		return string(all)
	}
	return string(all[:max(0, width-1)]) + "…"
}
