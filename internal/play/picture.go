package play

import (
	"fmt"
	"strings"
	"time"
)

// A screen of 80 columns has two panels and a gap.
const (
	labelWidth = 8
	chartWidth = 30 // two seconds each
	panelWidth = labelWidth + chartWidth
	chartRows  = 6
	gap        = "   "
)

// Picture draws both ways of a story side by side.
func (s *Story) Picture(direct, through *Score, p Palette) string {
	return fmt.Sprintf("\n%s\n", s.Title) + s.Panels(direct, through, p)
}

// Panels is Picture without a title.
func (s *Story) Panels(direct, through *Score, p Palette) string {
	left, right := s.panel("directly", direct, p), s.panel("through weir", through, p)
	var b strings.Builder
	b.WriteString("\n")
	for i := range left {
		b.WriteString(strings.TrimRight(left[i]+gap+right[i], " ") + "\n")
	}
	return b.String()
}

func (s *Story) panel(title string, score *Score, p Palette) []string {
	out := []string{pad(title + ": calls done per second")}
	for row := chartRows; row > 0; row-- {
		label := ""
		if row == chartRows || row == chartRows/2 {
			label = fmt.Sprintf("%.3g", s.Machine.Does*float64(row)/chartRows)
		}
		out = append(out, fmt.Sprintf("%*s ", labelWidth-1, label)+s.bars(row, score, p))
	}
	from, _ := s.trouble()
	out = append(out, pad(strings.Repeat(" ", labelWidth+s.column(from))+"└ "+s.Name))
	for i, name := range Tenants {
		out = append(out, fmt.Sprintf("%-*s", labelWidth, name)+s.fate(score.shares[i], p))
	}
	return out
}

// column returns the column of a time in a chart.
func (s *Story) column(at time.Duration) int { return int(at * chartWidth / s.Length) }

// during returns the seconds of a column.
func (s *Story) during(column int) (from, to int) {
	seconds := int(s.Length / time.Second)
	from = column * seconds / chartWidth
	return from, max(from+1, (column+1)*seconds/chartWidth)
}

// bars draws one row of the bars, with wasted work on top.
func (s *Story) bars(row int, score *Score, p Palette) string {
	var b strings.Builder
	for i := range chartWidth {
		from, to := s.during(i)
		var sum Work
		for _, w := range score.seconds[from:to] {
			sum.Useful, sum.Wasted = sum.Useful+w.Useful, sum.Wasted+w.Wasted
		}
		height := float64(2*row-1) * s.Machine.Does * float64(to-from) / (2 * chartRows) // middle of the cell
		k := empty
		switch {
		case float64(sum.Useful) > height:
			k = useful
		case float64(sum.Useful+sum.Wasted) > height:
			k = wasted
		}
		b.WriteString(p.paint(k))
	}
	return b.String()
}

// fate draws a tenant's share of answered calls, column by column.
func (s *Story) fate(shares []float64, p Palette) string {
	var b strings.Builder
	for i := range chartWidth {
		from, to := s.during(i)
		sum, n := 0.0, 0
		for _, share := range shares[from:to] {
			if share >= 0 {
				sum, n = sum+share, n+1
			}
		}
		if n == 0 {
			sum, n = -1, 1
		}
		b.WriteString(p.paint(kindOf(sum / float64(n))))
	}
	return b.String()
}

// pad fills an uncolored line to the width of a panel.
func pad(s string) string { return s + strings.Repeat(" ", max(0, panelWidth-len([]rune(s)))) }

// Legend explains the picture.
func Legend(p Palette) string {
	return fmt.Sprintf("\n%s work for callers that still waited   %s work for callers that had left\n"+
		"tenants: %s all calls answered  %s most  %s some  %s none\n",
		p.paint(useful), p.paint(wasted), p.paint(all), p.paint(most), p.paint(some), p.paint(none))
}
