package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/practice"
)

// A view is what is shown of a run at an instant.
type view struct {
	at, length time.Duration
	outageFrom time.Duration
	outageTo   time.Duration
	rate       int
	panels     [2]panel
}

// A panel is one way in a view.
type panel struct {
	title     string
	calls     int
	succeeded int
	lately    float64 // share of calls that succeeded in the last second; below 0 if none ended
	total     practice.Tally
	slots     []practice.Tally
}

func (s *stage) look(now time.Duration) view {
	v := view{at: min(now, s.config.For), length: s.config.For, rate: s.config.Rate}
	v.outageFrom, v.outageTo = s.config.outage()
	for i, w := range s.ways {
		p := panel{title: w.title, total: w.upstream.Total(), slots: w.upstream.Slots()}
		p.lately, p.calls, p.succeeded = w.lately(now - time.Second)
		v.panels[i] = p
	}
	return v
}

// A screen of 80 columns holds two panels and a gap.
const (
	panelWidth = 38
	labelWidth = 6
	chartWidth = panelWidth - labelWidth
	chartRows  = 9 // three to the rate of the upstream
	gap        = "    "
)

// lines draws the view: both panels side by side, and what they mean.
func (v view) lines(p palette) []string {
	left, right := v.panels[0].lines(v, p), v.panels[1].lines(v, p)
	var out []string
	for i := range left {
		out = append(out, strings.TrimRight(left[i]+gap+right[i], " "))
	}
	return append(out, "", fmt.Sprintf("%s served  %s refused  %s failed    %3.0fs of %.0fs",
		p.paint(served), p.paint(refused), p.paint(failed), v.at.Seconds(), v.length.Seconds()))
}

func (p panel) lines(v view, c palette) []string {
	out := []string{pad(p.title + ": requests a second")}
	for row := chartRows; row > 0; row-- {
		out = append(out, label(row, v.rate)+p.chartRow(row, v, c))
	}
	return append(out,
		pad(strings.Repeat(" ", labelWidth)+outageMark(v)),
		pad(fmt.Sprintf("%6d calls    %6d attempts", p.calls, p.total.Arrived())),
		pad(fmt.Sprintf("%6d refused  %6.2f for each call", p.total.Refused, ratio(p.total.Arrived(), p.calls))),
		pad(fmt.Sprintf("%6d failed   %5.1f%% succeeded", p.total.Failed, 100*ratio(p.succeeded, p.calls))),
		pad("now "+meter(p.lately)))
}

// label stands left of every third row.
func label(row, rate int) string {
	switch {
	case row == chartRows/3:
		return "limit "
	case row%3 == 0:
		return fmt.Sprintf("%5d ", rate*row/3)
	}
	return strings.Repeat(" ", labelWidth)
}

// chartRow is one row of the bars. The limit is a line where no bar hides it.
func (p panel) chartRow(row int, v view, c palette) string {
	var b strings.Builder
	for i := range chartWidth {
		k := p.cell(i, row, v)
		if k == empty && row == chartRows/3 {
			k = line
		}
		b.WriteString(c.paint(k))
	}
	return b.String()
}

// cell is what stands in the middle of a cell. A bar is a stack: what was served
// is below, what failed on top. Whatever arrived shows, however little it was.
func (p panel) cell(column, row int, v view) kind {
	t, seconds := p.column(column, v.length)
	if seconds == 0 {
		return empty
	}
	height := (float64(row) - 0.5) * float64(v.rate) / (chartRows / 3) * seconds
	if row == 1 {
		height = min(height, float64(t.Arrived())/2)
	}
	switch {
	case height < float64(t.Served):
		return served
	case height < float64(t.Served+t.Refused):
		return refused
	case height < float64(t.Arrived()):
		return failed
	}
	return empty
}

// column is what arrived in the part of the run that a column stands for, and
// how long that part is.
func (p panel) column(i int, length time.Duration) (t practice.Tally, seconds float64) {
	slots := int((length + practice.Slot - 1) / practice.Slot)
	from, to := i*slots/chartWidth, (i+1)*slots/chartWidth
	for j := from; j < max(to, from+1); j++ {
		if j < len(p.slots) {
			t = t.Plus(p.slots[j])
		}
		seconds += practice.Slot.Seconds()
	}
	return t, seconds
}

// outageMark stands under the columns of the outage.
func outageMark(v view) string {
	from := int(v.outageFrom * chartWidth / v.length)
	return strings.Repeat(" ", from) + "outage"
}

// meter is a share as a bar and a number.
func meter(share float64) string {
	if share < 0 {
		return strings.Repeat("·", 20) + "    -"
	}
	full := int(share*20 + 0.5)
	return strings.Repeat("■", full) + strings.Repeat("·", 20-full) + fmt.Sprintf(" %3.0f%% ok", 100*share)
}

// pad fills a line without colours up to the width of a panel.
func pad(s string) string { return fmt.Sprintf("%-*s", panelWidth, s) }
