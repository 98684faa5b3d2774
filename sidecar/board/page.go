package board

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
)

// A markup is HTML that is not escaped. It contains only this package's constants and numbers.
type markup string

// A page is HTML that is being written. It does not use text/template, because the linker could then omit no method
// of any type, and the program would be 50% larger (docs/adr/0012-binary-size.md).
type page struct {
	bytes.Buffer
	token  string // of its forms
	signed string // the signed-in operator, by a cookie

	columns []string // of the table that is being written
}

// put writes a line of a page. The format is markup. Arguments are escaped unless they are markup.
func (p *page) put(format string, with ...any) {
	p.WriteString(string(text(format, with...)) + "\n")
}

// text formats markup. Arguments are escaped unless they are markup.
func text(format string, with ...any) markup {
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
	return markup(fmt.Sprintf(format, with...))
}

// breakable returns a path or the name of a field with line break opportunities after its separators.
func breakable(s string) markup {
	return markup(separators.Replace(string(text("%s", s))))
}

var separators = strings.NewReplacer("/", "/<wbr>", ".", ".<wbr>", "_", "_<wbr>", ":", ":<wbr>", "=", "=<wbr>")

// marked returns a text that begins with the sign of a state, in the state's color.
func marked(state string, words markup) markup {
	return text(`<span class="state %s">%s</span>`, state, words)
}

// table begins a table. On narrow screens its columns label the cells, and each row is a block.
func (p *page) table(caption string, columns ...string) {
	p.columns = columns
	p.WriteString("<table>")
	if caption != "" {
		p.put("<caption>%s</caption>", caption)
	}
	p.WriteString("<thead><tr>")
	for _, c := range columns {
		p.put("<th>%s", c)
	}
	p.put("</thead><tbody>")
}

// cells writes a row of a table: texts, numbers or markup.
func (p *page) cells(all ...any) {
	p.WriteString("<tr>")
	for i, v := range all {
		if in := text("%v", v); in != "" {
			fmt.Fprintf(p, `<td data-label="%s">%s`, p.columns[i], in)
		} else {
			p.WriteString("<td>")
		}
	}
	p.WriteString("\n")
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

// whole writes the page of a view. open is the upstream whose row is open.
func (p *page) whole(v *View, open string) {
	p.head("weir: "+v.Headline, true)
	p.put(`<header>
<h1>weir</h1>
<p id="live" role="status">Reload this page to see the current state.</p>`)
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
<form method="get" action="./" role="search">
<label>Filter by name or state <input name="q" value="%s" type="search"></label>
<button>Show</button>
</form>`, v.Filter)
	p.askWhy("")
	p.put("%s\n<div id=\"rows\">", legend)
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

// A piece is a section of the page outside the rows: its id, and the function that writes it.
type piece struct {
	id    string
	write func(*page, *View)
}

// The pieces above and below the rows.
var (
	above = []piece{{"headline", (*page).headline}, {"tiles", (*page).tiles}}
	below = []piece{{"more", (*page).more}, {"fleet", (*page).fleet}, {"deliveries", (*page).deliveries}, {"about", (*page).about}}
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
	p.put(`<p class="meta">weir %s, up %s%s</p>`, v.Version, ago(v.Started), when(v.Draining, ", shutting down"))
	p.loaded(v.Config)
}

// tiles writes the totals of all upstreams.
func (p *page) tiles(v *View) {
	p.put(`<dl class="tiles">`)
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
		p.put(`<div class="%s"><dt>%s</dt><dd>%s</dd></div>`, tile.state, tile.of, tile.figure)
	}
	p.put(`</dl>`)
}

// more writes which upstreams have no row.
func (p *page) more(v *View) {
	switch {
	case v.Known == 0:
		p.put(`<p>The configuration has no upstream.</p>`)
	case len(v.Upstreams) == 0:
		p.put(`<p>No upstream has “%s” in its name or is in that state. <a href="./">Show all</a></p>`, v.Filter)
	case v.Hidden > 0:
		p.put(`<p>and %d more in a better state or with fewer calls. Use the filter to find them.</p>`, v.Hidden)
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
	p.put(`<section aria-label="Deliveries"><h2>Deliveries</h2>`)
	if d.Error != "" {
		p.put(`<p class="trouble">✖ The store of deliveries does not answer: %s</p>`, d.Error)
	}
	if len(d.Upstreams) > 0 {
		p.table("", "Upstream", "Waiting", "Oldest waits", "Being sent", "Delivered", "Dead letters")
		for _, l := range d.Upstreams {
			var dead any = l.Failed
			if l.Failed > 0 {
				dead = marked("failing", text(`%s <a href="%s">%d</a>`, sign("failing"), toDead(l.Upstream), l.Failed))
			}
			p.cells(l.Upstream, l.Waiting, sinceOf(l.WaitingFrom), l.Processing, l.Completed, dead)
		}
		p.put("</tbody></table>")
	}
	p.put("</section>")
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
	form.put("<button>%s</button></form>", say)
	return markup(form.String())
}

// form begins a form with the fields of an action.
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

// sure writes the confirmation page.
func (p *page) sure(d *deed) {
	p.head("weir: please confirm", false)
	p.put("<main class=\"sure\">\n<h1>Please confirm</h1>\n<p>%s.</p>", d.words())
	if d.Bad != "" {
		p.put(`<p class="trouble" role="alert">✖ %s</p>`, d.Bad)
	}
	p.form(d)
	p.put(`<input type="hidden" name="sure" value="yes">`)
	if d.Do == "open" || d.Do == "pause" {
		p.put(`<p><label>Duration, such as 5m. Leave it empty for no time limit.<br><input name="for" value="%s" autocomplete="off"></label></p>`, d.For)
	}
	p.put(`<p><label>Reason, for the log<br><input name="reason" value="%s" required maxlength="200" autocomplete="off" autofocus></label></p>
<p><button class="do">Confirm</button> <a href="%s">Cancel</a></p>
</form>
</main>
</body>
</html>`, d.Reason, d.back())
}
