package board

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/internal/webpage"
)

// A markup is HTML that is not escaped.
type markup = webpage.Markup

var (
	text      = webpage.Text
	breakable = webpage.Breakable
	marked    = webpage.Marked
	sign      = webpage.Sign
)

// A page is a page of the board that is being written.
type page struct {
	webpage.Page
	token  string // of its forms
	signed string // the signed-in operator, by a cookie
}

// head begins a page.
func (p *page) head(title string, scripted bool) {
	p.Head(title, `<link rel="stylesheet" href="style.css">`+when(scripted, `
<script src="live.js" defer></script>`))
}

// whole writes the page of a view. open is the upstream whose row is open.
func (p *page) whole(v *View, open string) {
	p.head("weir: "+v.Headline, true)
	p.Put(`<header>
<h1>weir</h1>
<p id="live" role="status">Reload this page to see the current state.</p>`)
	if p.signed != "" {
		p.Put(`<form method="post" action="logout"><button>Sign out %s</button></form>`, p.signed)
	}
	p.Put("</header>\n<main>")
	element := func(id string, write func(*page, *View)) {
		p.Put(`<div id="%s">`, id)
		write(p, v)
		p.Put("</div>")
	}
	for _, f := range above {
		element(f.id, f.write)
	}
	p.Put(`<section aria-label="Upstreams"><h2>Upstreams</h2>
<form method="get" action="./" role="search">
<label>Filter by name or state <input name="q" value="%s" type="search"></label>
<button>Show</button>
</form>`, v.Filter)
	p.askWhy("")
	p.Put("%s\n<div id=\"rows\">", legend)
	for i, r := range v.Upstreams {
		p.row(r, i < mostPlots, r.Name == open)
	}
	p.Put("</div>")
	for _, f := range below[:1] {
		element(f.id, f.write)
	}
	p.Put("</section>")
	for _, f := range below[1:] {
		element(f.id, f.write)
	}
	p.Put("</main>\n</body>\n</html>")
}

// A piece is a section of the page outside the rows: its id, and the function that writes it.
type piece struct {
	id    string
	write func(*page, *View)
}

// The pieces above and below the rows.
var (
	above = []piece{{"headline", (*page).headline}, {"tiles", (*page).tiles}}
	below = []piece{{"more", (*page).more}, {"fleet", (*page).fleet}, {"runs", (*page).runs}, {"deliveries", (*page).deliveries}, {"about", (*page).about}}
)

// parts returns all updated parts of a page in order. Rendered rows are taken from drawn, or added to it.
func (v *View) parts(drawn map[*Row]string) (all []part) {
	pieces := func(of []piece) {
		for _, f := range of {
			var p page
			f.write(&p, v)
			all = append(all, part{f.id, p.String()})
		}
	}
	pieces(above)
	for i, r := range v.Upstreams {
		line, done := drawn[r]
		if !done {
			var p page
			p.line(r)
			line = p.String()
			drawn[r] = line
		}
		if i < mostPlots {
			line += string(r.plot())
		}
		all = append(all, part{rowID + r.Name, line})
	}
	pieces(below)
	return all
}

// about writes the version of this weir, and its configuration.
func (p *page) about(v *View) {
	p.Put(`<p class="meta">weir %s, up %s%s</p>`, v.Version, ago(v.Started), when(v.Draining, ", shutting down"))
	p.loaded(v.Config)
}

// tiles writes the totals of all upstreams.
func (p *page) tiles(v *View) {
	p.Put(`<dl class="tiles">`)
	for _, tile := range []struct {
		of, figure string
		state      markup // "" if the figure is not notable
	}{
		{"Allowed immediately", per(v.Allowed) + "/s", when(v.Allowed > 0, "ok")},
		{"Allowed after a wait", per(v.Waited) + "/s", when(v.Waited > 0, "waiting")},
		{"Throttled by upstreams", per(v.Throttled) + "/s", when(v.Throttled > 0, "throttled")},
		{"Failed at upstreams", per(v.Failed) + "/s", when(v.Failed > 0, "failing")},
		{"Refused by weir", per(v.Refused) + "/s", when(v.Refused > 0, "refusing")},
		{"Breakers open or half-open", fmt.Sprint(v.Open), when(v.Open > 0, "open")},
		{"Paused upstreams", fmt.Sprint(v.Paused), when(v.Paused > 0, "paused")},
	} {
		p.Put(`<div class="%s"><dt>%s</dt><dd>%s</dd></div>`, tile.state, tile.of, tile.figure)
	}
	p.Put(`</dl>`)
}

// more writes which upstreams have no row.
func (p *page) more(v *View) {
	switch {
	case v.Known == 0:
		p.Put(`<p>The configuration has no upstream.</p>`)
	case len(v.Upstreams) == 0:
		p.Put(`<p>No upstream has “%s” in its name or as its state. <a href="./">Show all</a></p>`, v.Filter)
	case v.Hidden > 0:
		p.Put(`<p>%d more upstreams have a better state or fewer calls. Use the filter to find them.</p>`, v.Hidden)
	}
}

// when returns m if so is true.
func when(so bool, m markup) markup {
	if so {
		return m
	}
	return ""
}

func (p *page) deliveries(v *View) {
	d := v.Deliveries
	if d == nil {
		return
	}
	p.Put(`<section aria-label="Deliveries"><h2>Deliveries</h2>`)
	if d.Error != "" {
		p.Put(`<p class="trouble">✖ The store of deliveries does not answer: %s</p>`, d.Error)
	}
	if len(d.Upstreams) > 0 {
		p.Table("", "Upstream", "Waiting", "Oldest waits", "Being sent", "Delivered", "Dead letters")
		for _, l := range d.Upstreams {
			var dead any = l.Failed
			if l.Failed > 0 {
				dead = marked("failing", text(`%s <a href="%s">%d</a>`, sign("failing"), toDead(l.Upstream), l.Failed))
			}
			p.Cells(l.Upstream, l.Waiting, sinceOf(l.WaitingFrom), l.Processing, l.Completed, dead)
		}
		p.EndTable()
	}
	p.Put("</section>")
}

// runs writes the latest runs.
func (p *page) runs(v *View) {
	if len(v.Runs) == 0 {
		return
	}
	p.Put(`<section aria-label="Runs"><h2>Latest runs</h2>`)
	p.Table("", "Run", "Calls", "Tokens", "USD", "Refused", "Last call", "Tools")
	for i := range v.Runs {
		r := &v.Runs[i]
		p.Cells(r.Name, r.Calls, r.Tokens, r.Dollars(), r.Refused, sinceOf(r.Last), r.MostCalled(toolsShown))
	}
	p.EndTable()
	p.Put("</section>")
}

// sinceOf returns how long ago an instant was; "" for the zero instant.
func sinceOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return span(time.Since(at))
}

// lasting formats milliseconds; "" if there are none.
func lasting(n int64) string {
	if n <= 0 {
		return ""
	}
	return span(time.Duration(n) * time.Millisecond)
}

// button returns a form that requests an action.
func (p *page) button(d *deed, say string) markup {
	form := page{token: p.token}
	form.form(d)
	form.Put("<button>%s</button></form>", say)
	return markup(form.String())
}

// form begins a form with the fields of an action.
func (p *page) form(d *deed) {
	p.WriteString(`<form method="post" action="act">`)
	field := func(name, value string, there bool) {
		if there {
			p.Put(`<input type="hidden" name="%s" value="%s">`, name, value)
		}
	}
	field("token", p.token, true)
	field("upstream", d.Upstream, true)
	field("do", d.Do, true)
	field("limit", d.Limit, d.Limit != "")
	field("key", d.Key, d.Keyed)
	field("pool", d.Pool, d.Pooled)
	field("operation", d.Operation, d.Operation != "")
	field("id", d.ID, d.ID != "")
}

// sure writes the confirmation page.
func (p *page) sure(d *deed) {
	p.head("weir: please confirm", false)
	p.Put("<main class=\"sure\">\n<h1>Please confirm</h1>\n<p>%s.</p>", d.words())
	if d.Bad != "" {
		p.Put(`<p class="trouble" role="alert">✖ %s</p>`, d.Bad)
	}
	p.form(d)
	p.Put(`<input type="hidden" name="sure" value="yes">`)
	if d.Do == "open" || d.Do == "pause" {
		p.Put(`<p><label>Duration, such as 5m. Empty means no time limit.<br><input name="for" value="%s" autocomplete="off"></label></p>`, d.For)
	}
	p.Put(`<p><label>Reason, for the log<br><input name="reason" value="%s" required maxlength="200" autocomplete="off" autofocus></label></p>
<p><button class="do">Confirm</button> <a href="%s">Cancel</a></p>
</form>
</main>
</body>
</html>`, d.Reason, d.back())
}
