package play

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/webpage"
)

// Style completes webpage.Style for the sections of this file.
//
//go:embed html.css
var Style string

// Sizes of the picture of a story, in its own units.
const (
	plotColumns = 240 // at most; at least a second each
	plotHeight  = 40
	plotStripe  = 4 // height of the time of trouble, at the bottom
)

// State returns the state of the page's style that shows how the story ended with the file.
func (r *Report) State() string {
	switch x := r.Weir; {
	case !r.Holds() || x != nil && x.Stuck():
		return "failing"
	case x == nil || x.EndedMS > 0 || x.RecoveredMS == nil:
		return "waiting"
	}
	return "ok"
}

// Endings describes how the story ended without weir and with the file. A way that was not played has none.
func (r *Report) Endings() (direct, through string) {
	if r.Direct != nil {
		direct = r.story.ending(r.Direct)
	}
	if r.Weir != nil {
		through = r.story.ending(r.Weir)
	}
	return direct, through
}

// HTML writes the report as a section of a page. Its heading has the id.
func (r *Report) HTML(p *webpage.Page, id webpage.Markup) {
	p.Put(`<section class="story" aria-labelledby="%s"><h3 id="%s">%s</h3>`, id, id, r.Story)
	list(p, "Assumed", r.Assumed, "; ")
	list(p, "Not played", r.NotPlayed, ", ")
	s := &r.story
	p.Put(`<p class="legend"><span class="key"><i class="allowed"></i>calls answered</span> <span class="key"><i class="failed"></i>not answered</span> <span class="key"><i class="fault"></i>%s</span></p>
<div class="ways">`, s.troubles())
	direct, through := r.Endings()
	if r.Direct != nil {
		s.figureOf(p, "Without weir", direct, r.Direct)
	}
	if r.Weir != nil {
		s.figureOf(p, "With the file", through, r.Weir)
	}
	p.Put("</div>")
	switch {
	case r.Weir == nil:
	case r.Weir.Fleet != nil:
		p.Figures("", "Figure", "With the file")
		for _, f := range s.fleetFigures() {
			p.Row(f.name, f.of(r.Weir))
		}
		p.EndTable()
	case r.Direct != nil:
		p.Figures("", "Figure", "Without weir", "With the file")
		for _, f := range s.figures(r.Direct, r.Weir) {
			p.Row(strings.TrimSpace(f.name), f.of(r.Direct), f.of(r.Weir))
		}
		p.EndTable()
	}
	r.checksHTML(p)
	p.Put("</section>")
}

// list writes texts as a paragraph.
func list(p *webpage.Page, title string, all []string, separator string) {
	if len(all) > 0 {
		p.Put(`<p class="meta">%s: %s.</p>`, title, strings.Join(all, separator))
	}
}

// checksHTML writes the expectations.
func (r *Report) checksHTML(p *webpage.Page) {
	if len(r.Checks) == 0 {
		return
	}
	p.Figures("Expectations", "Figure", "Expected", "Found", "Seed", "Result")
	for _, c := range r.Checks {
		state, word := "ok", "holds"
		if !c.Holds {
			state, word = "failing", "does not hold"
		}
		p.Row(c.Figure, c.Bound, c.Found, c.Seed, webpage.Marked(state, webpage.Text("%s %s", webpage.Sign(state), word)))
	}
	p.EndTable()
}

// troubles describes the trouble of a story and its times.
func (s *Story) troubles() string {
	var all []string
	for i := range s.Troubles {
		t := &s.Troubles[i]
		what := t.Kind.String()
		if t.Times > 0 {
			what += fmt.Sprintf(" %gx", t.Times)
		}
		if t.To > t.From {
			all = append(all, fmt.Sprintf("%s from %v to %v", what, t.From, t.To))
		} else {
			all = append(all, fmt.Sprintf("%s at %v", what, t.From))
		}
	}
	if len(all) == 0 {
		return "no trouble"
	}
	return strings.Join(all, ", ")
}

// figureOf draws the calls of one way over time, by the time at which they began.
func (s *Story) figureOf(p *webpage.Page, title, ending string, x *Score) {
	n := len(x.begun)
	each := (n + plotColumns - 1) / plotColumns
	columns := make([]begun, (n+each-1)/each)
	for i, b := range x.begun {
		at := &columns[i/each]
		at.calls, at.good = at.calls+b.calls, at.good+b.good
	}
	most := 1
	for _, c := range columns {
		most = max(most, c.calls)
	}
	peak := strings.TrimSuffix(number(float64(most)/float64(each)), " calls/s") + "/s"
	var b strings.Builder
	top := plotHeight + 2*plotStripe
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`, len(columns), top+plotStripe,
		webpage.Text("Calls over %v, at most %s: %s answered; %s", s.Length, peak, percent(x.Answered), s.troubles()))
	area := func(class webpage.Markup, of func(begun) int) {
		webpage.Area(&b, class, len(columns), top, func(i int) int { return plotHeight * of(columns[i]) / most })
	}
	area("failed", func(c begun) int { return c.calls })
	area("allowed", func(c begun) int { return c.good })
	for i := range s.Troubles {
		t := &s.Troubles[i]
		from := int(t.From.Seconds()) / each
		width := max(1, int(math.Ceil(t.To.Seconds()/float64(each)))-from)
		fmt.Fprintf(&b, `<rect class="shade" x="%d" width="%d" height="%d"/><rect class="fault" x="%d" y="%d" width="%d" height="%d"/>`, from, width, top, from, top, width, plotStripe)
	}
	b.WriteString("</svg>")
	p.Put(`<figure><figcaption><b>%s</b>: %s</figcaption><div class="trend">%s<span class="peak">max %s</span></div>%s</figure>`,
		title, ending, webpage.Markup(b.String()), peak, s.axis()) // numbers and escaped texts
}

// axis labels the time of a picture, with a label at each line that the style sheet draws.
func (s *Story) axis() webpage.Markup {
	third := func(i time.Duration) time.Duration { return (s.Length * i / 3).Round(time.Second) }
	return webpage.Text(`<span class="axis" aria-hidden="true"><span>0s</span><span>%v</span><span>%v</span><span>%v</span></span>`, third(1), third(2), third(3))
}

// ways are the classes and markers of curves, in their order.
var ways = [...]struct {
	class  webpage.Markup
	marker string
}{{"failed", "○"}, {"allowed", "□"}, {"refused", "△"}}

// HTML writes the search as a section of a page. Its heading has the id.
func (r *SearchReport) HTML(p *webpage.Page, id webpage.Markup) {
	p.Put(`<section class="story" aria-labelledby="%s"><h3 id="%s">Shortest stall with lasting damage</h3>
<p>%s</p>`, id, id, searched)
	list(p, "Assumed", r.Assumed, "; ")
	p.Put(`<figure><figcaption class="legend">`)
	columns := []string{"Load", "Asked"}
	for i := range r.Curves {
		p.Put(`<span class="key"><i class="%s"></i>%s %s</span>`, ways[i].class, ways[i].marker, r.Curves[i].Way)
		columns = append(columns, r.Curves[i].Way)
	}
	p.Put("</figcaption>\n%s</figure>", plotCurves(r.Curves))
	p.Figures("", columns...)
	for i := range r.Curves[0].Points {
		point := &r.Curves[0].Points[i]
		cells := []any{point.asked()}
		for _, c := range r.Curves {
			cells = append(cells, c.Points[i].result())
		}
		p.Row(fmt.Sprintf("%.0f%%", 100*point.Load), cells...)
	}
	p.EndTable()
	for i := range r.Curves {
		for _, note := range r.Curves[i].notes() {
			p.Put("<p>%s</p>", note)
		}
	}
	if r.Example != "" {
		p.Put("<h4>Repeat it</h4>\n<p>Save this as story.yaml. It is stuck %s. Play it with <code>%s</code></p>\n<pre>%s</pre>", r.Way, r.Command, r.Example)
	}
	p.Put("</section>")
}

// Place of the axes in the picture of curves.
const (
	curveLeft, curveRight = 48.0, 350.0
	curveTop, curveBottom = 34.0, 170.0
	curveNone             = 14 // height of loads without a trigger
	leastStall, mostStall = 0.1, 32.0
)

// plotCurves draws the smallest trigger of each way by load. Both axes have labels, so the picture keeps its shape.
func plotCurves(curves []Curve) webpage.Markup {
	var b strings.Builder
	var about []string
	for i := range curves {
		about = append(about, curves[i].about())
	}
	fmt.Fprintf(&b, `<svg class="curve" viewBox="0 0 360 210" role="img" aria-label="%s">`, webpage.Text("%s", strings.Join(about, "; ")))
	fmt.Fprintf(&b, `<text x="%g" y="%d" class="end">none</text>`, curveLeft-6, curveNone+4)
	for _, stall := range []float64{leastStall, 0.5, 2, 8, mostStall} {
		y := heightOf(stall)
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text x="%g" y="%.1f" class="end">%g s</text>`, curveLeft, y, curveRight, curveLeft-6, y+4, stall)
	}
	for i := range curves[0].Points {
		load := curves[0].Points[i].Load
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" class="middle">%.0f%%</text>`, placeOf(load), curveBottom+16, 100*load)
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" class="middle">load</text>`, (curveLeft+curveRight)/2, curveBottom+32)
	for i := range curves {
		curves[i].draw(&b, i)
	}
	b.WriteString("</svg>")
	return webpage.Markup(b.String()) // numbers and an escaped text
}

// placeOf returns the horizontal place of a load, and heightOf the vertical place of a stall in seconds.
func placeOf(load float64) float64 {
	first, last := searchLoads[0], searchLoads[len(searchLoads)-1]
	return curveLeft + 12 + (curveRight-curveLeft-28)*(load-first)/(last-first)
}

func heightOf(stall float64) float64 {
	share := math.Log(max(leastStall, stall)/leastStall) / math.Log(mostStall/leastStall)
	return curveBottom - share*(curveBottom-curveTop)
}

// draw draws a curve: a marker for each point, and a line between neighbors that are stuck. Curves without a trigger are side
// by side above.
func (c *Curve) draw(b *strings.Builder, way int) {
	line, joined := "", false
	var markers strings.Builder
	for i := range c.Points {
		p := &c.Points[i]
		x, y := placeOf(p.Load), heightOf(float64(p.StuckMS)/1000)
		switch {
		case p.Unfinished || p.Overloaded:
			joined = false
			continue
		case p.StuckMS == 0:
			x, y = x+float64(way-1)*9, curveNone
			joined = false
		case joined:
			line += fmt.Sprintf("L%.1f %.1f", x, y)
		default:
			line += fmt.Sprintf("M%.1f %.1f", x, y)
			joined = true
		}
		markers.WriteString(marker(way, x, y))
	}
	fmt.Fprintf(b, `<g class="%s">`, ways[way].class)
	if line != "" {
		fmt.Fprintf(b, `<path class="line" d="%s"/>`, line)
	}
	b.WriteString(markers.String() + "</g>")
}

// marker draws the marker of a way.
func marker(way int, x, y float64) string {
	switch way {
	case 0:
		return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="3.5"/>`, x, y)
	case 1:
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="7" height="7"/>`, x-3.5, y-3.5)
	}
	return fmt.Sprintf(`<path d="M%.1f %.1fl4 7h-8z"/>`, x, y-4)
}

// about describes a curve in a sentence.
func (c *Curve) about() string {
	var all []string
	for i := range c.Points {
		all = append(all, fmt.Sprintf("%s at %.0f%%", c.Points[i].result(), 100*c.Points[i].Load))
	}
	return c.Way + ": " + strings.Join(all, ", ")
}

// HTML writes the replay as sections of a page.
func (x *Replayed) HTML(p *webpage.Page) {
	for _, note := range x.notes() {
		p.Put("<p>%s.</p>", upperFirst(note))
	}
	for i := range x.Upstreams {
		u := &x.Upstreams[i]
		id := fmt.Sprintf("u%d", i+1)
		p.Put(`<section aria-labelledby="%s"><h2 id="%s">Upstream %s</h2>`, id, id, u.Upstream)
		list(p, "Assumed", u.Assumed, "; ")
		list(p, "Not played", u.NotPlayed, ", ")
		p.WriteString(`<div class="short">`)
		columns := []string{"Calls", "answered", "sent", "refused", "throttled", "failed", "wait p50", "wait p99", "paid, USD"}
		if !u.paid() {
			columns = columns[:len(columns)-1]
		}
		for _, row := range u.rows() {
			p.Figures(row.title(), columns...)
			for _, f := range row.Flows {
				p50, p99 := f.waited()
				cells := []any{f.Answered, f.Sent, f.Refused, f.Throttled, f.Failed, p50, p99, f.dollars()}
				p.Row(f.Way, cells[:len(columns)-1]...)
			}
			p.EndTable()
		}
		p.Put("</div></section>")
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
