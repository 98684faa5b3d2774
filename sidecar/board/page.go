package board

import (
	"bytes"
	"fmt"
	"html"
	"time"
)

// A markup is what is part of a page as it is. It is made of this package's own words and of numbers alone.
type markup string

// A page is HTML on its way. It is written by hand: with text/template in it the linker could leave out no method
// of any type, and the program would be half as large again (docs/adr/0012-what-ships.md).
type page struct {
	bytes.Buffer
	token  string // of its forms
	signed string // who has signed in, by a cookie
}

// put writes a line of a page. The format is markup; of what stands in it only a markup is not escaped.
func (p *page) put(format string, with ...any) {
	for i, v := range with {
		switch v := v.(type) {
		case markup:
		case string:
			with[i] = html.EscapeString(v)
		case fmt.Stringer:
			with[i] = html.EscapeString(v.String())
		case error:
			with[i] = html.EscapeString(v.Error())
		}
	}
	fmt.Fprintf(p, format+"\n", with...)
}

// head begins a page.
func (p *page) head(title string, scripted bool) {
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="stylesheet" href="style.css">`, title)
	if scripted {
		p.put(`<script src="live.js" defer></script>`)
	}
	p.put(`</head>
<body>`)
}

// whole is the page of a view; open is the upstream whose row is open.
func (p *page) whole(v *View, open string) {
	p.head("weir", true)
	p.put(`<header>
<h1>weir</h1>
<form method="get" action="./" role="search">
<label>Upstream or state <input name="q" value="%s" type="search"></label>
<button>Show</button>
</form>
<p id="live" role="status">Load the page again to see what is so now.</p>`, v.Filter)
	p.askWhy("")
	if p.signed != "" {
		p.put(`<form method="post" action="logout"><button>Sign out %s</button></form>`, p.signed)
	}
	p.put("</header>\n<main>")
	element := func(id string, write func(*page, *View)) {
		p.put(`<div id="%s">`, id)
		write(p, v)
		p.put("</div>")
	}
	for _, f := range above {
		element(f.id, f.write)
	}
	p.put(`<section aria-label="Upstreams"><h2>Upstreams</h2>
<div id="rows">`)
	for i, r := range v.Upstreams {
		p.row(r, i < mostPlots, r.Name == open)
	}
	p.put("</div>")
	for _, f := range below[:1] {
		element(f.id, f.write)
	}
	p.put("</section>")
	for _, f := range below[1:] {
		element(f.id, f.write)
	}
	p.put("</main>\n</body>\n</html>")
}

// A piece is a part of the page beside the rows: its id, and what writes it.
type piece struct {
	id    string
	write func(*page, *View)
}

// Those above the rows, and below them.
var (
	above = []piece{{"about", (*page).about}, {"troubles", (*page).troubles}, {"tiles", (*page).tiles}}
	below = []piece{{"more", (*page).more}, {"fleet", (*page).fleet}, {"deliveries", (*page).deliveries}}
)

// parts are all of a page that is renewed, in its order. Lines of rows are taken from drawn, or added to it.
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

// about is which weir this is, and what it goes by.
func (p *page) about(v *View) {
	p.put(`<p class="meta">weir %s, up %s%s</p>`, v.Version, ago(v.Started), when(v.Draining, "<strong>, draining</strong>"))
	p.loaded(v.Config)
}

func (p *page) troubles(v *View) {
	for _, t := range v.Troubles {
		p.put(`<p class="trouble"><strong>✖ Trouble with %s</strong>: %s; %s</p>`, t.With, t.Error, t.Help)
	}
}

// tiles are figures of all upstreams together.
func (p *page) tiles(v *View) {
	p.put(`<dl class="tiles">`)
	for _, tile := range []struct {
		of, figure string
		bad        bool
	}{
		{"Allowed", per(v.Allowed) + "/s", false},
		{"After a wait", per(v.Waited) + "/s", false},
		{"Refused by weir", per(v.Refused) + "/s", v.Refused > 0},
		{"Throttled upstream", per(v.Throttled) + "/s", v.Throttled > 0},
		{"Failed upstream", per(v.Failed) + "/s", v.Failed > 0},
		{"Breakers not closed", fmt.Sprint(v.Open), v.Open > 0},
		{"Paused", fmt.Sprint(v.Paused), v.Paused > 0},
	} {
		p.put(`<div%s><dt>%s</dt><dd>%s</dd></div>`, when(tile.bad, ` class="bad"`), tile.of, tile.figure)
	}
	p.put(`</dl>`)
}

// more says which upstreams there is no row for.
func (p *page) more(v *View) {
	switch {
	case v.Known == 0:
		p.put(`<p>There are none: the configuration names no upstream.</p>`)
	case len(v.Upstreams) == 0:
		p.put(`<p>None is called “%s”, or in that state. <a href="./">Show all</a></p>`, v.Filter)
	case v.Hidden > 0:
		p.put(`<p>and %d more that matter less: find them by a part of their names.</p>`, v.Hidden)
	}
}

// when is markup if it is so.
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
	p.put(`<section aria-label="Deliveries"><h2>Deliveries</h2>`)
	if d.Error != "" {
		p.put(`<p class="trouble">✖ Nobody knows: %s</p>`, d.Error)
	}
	if len(d.Upstreams) > 0 {
		p.table("", "Upstream", "Waiting", "Being sent", "Delivered", "Dead letters")
		for _, l := range d.Upstreams {
			p.put(`<tr><td>%s<td>%d<td>%d<td>%d<td%s>`, l.Upstream, l.Waiting, l.Processing, l.Completed, when(l.Failed > 0, ` class="state open"`))
			if l.Failed > 0 {
				p.put(`<a href="%s">%d</a>`, toDead(l.Upstream), l.Failed)
			} else {
				p.put("0")
			}
		}
		p.put("</tbody></table>")
	}
	p.put("</section>")
}

// lasting is milliseconds for people; nothing for none.
func lasting(n int64) string {
	if n <= 0 {
		return ""
	}
	return span(time.Duration(n) * time.Millisecond)
}

// button is a form that asks for a deed.
func (p *page) button(d *deed, say string) {
	p.form(d)
	p.put("<button>%s</button></form>", say)
}

// form begins one with what a deed says.
func (p *page) form(d *deed) {
	p.WriteString(`<form method="post" action="act">`)
	field := func(name, value string, there bool) {
		if there {
			p.put(`<input type="hidden" name="%s" value="%s">`, name, value)
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

// sure asks once more.
func (p *page) sure(d *deed) {
	p.head("weir: are you sure?", false)
	p.put("<main class=\"sure\">\n<h1>Are you sure?</h1>\n<p>%s.</p>", d.words())
	if d.Bad != "" {
		p.put(`<p class="trouble" role="alert">✖ %s</p>`, d.Bad)
	}
	p.form(d)
	p.put(`<input type="hidden" name="sure" value="yes">`)
	if d.Do == "open" || d.Do == "pause" {
		p.put(`<p><label>For how long, such as 5m; empty: until told otherwise<br><input name="for" value="%s" autocomplete="off"></label></p>`, d.For)
	}
	p.put(`<p><label>Why, for the log<br><input name="reason" value="%s" required maxlength="200" autocomplete="off" autofocus></label></p>
<p><button class="do">Do it</button> <a href="%s">Leave it</a></p>
</form>
</main>
</body>
</html>`, d.Reason, d.back())
}
