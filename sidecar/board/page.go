package board

import (
	"bytes"
	"fmt"
	"html"
	"time"

	"github.com/seed1158cd35/weir/sidecar/status"
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

// whole is the page of a view.
func (p *page) whole(v *view) {
	p.head("weir", true)
	p.put(`<header>
<h1>weir</h1>
<form method="get" action="./" role="search">
<label>Upstream or state <input name="q" value="%s" type="search"></label>
<button>Show</button>
</form>
<p id="live" role="status">Load the page again to see what is so now.</p>`, v.Filter)
	if p.signed != "" {
		p.put(`<form method="post" action="logout"><button>Sign out %s</button></form>`, p.signed)
	}
	p.put("</header>\n<main>")
	p.inside(v)
	p.put("</main>\n</body>\n</html>")
}

// inside is what is renewed of it.
func (p *page) inside(v *view) {
	p.put(`<p class="meta">weir %s, up %s%s</p>`, v.Version, v.Up, when(v.Draining, "<strong>, draining</strong>"))
	p.loaded(v.Config)
	for _, t := range v.Troubles {
		p.put(`<p class="trouble"><strong>✖ Trouble with %s</strong>: %s; %s</p>`, t.With, t.Error, t.Help)
	}
	p.put(`<dl class="tiles">`)
	for _, tile := range []struct {
		of, figure string
		bad        bool
	}{
		{"Allowed", per(v.Allowed) + "/s", false},
		{"After a wait", per(v.Waited) + "/s", false},
		{"Refused by weir", per(v.Refused) + "/s", v.Refused > 0},
		{"Throttled upstream", per(v.Throttled) + "/s", v.Throttled > 0},
		{"Breakers not closed", fmt.Sprint(v.Open), v.Open > 0},
		{"Paused", fmt.Sprint(v.Paused), v.Paused > 0},
	} {
		p.put(`<div%s><dt>%s</dt><dd>%s</dd></div>`, when(tile.bad, ` class="bad"`), tile.of, tile.figure)
	}
	p.put(`</dl>
<section aria-label="Upstreams">
<h2>Upstreams</h2>`)
	switch {
	case len(v.Upstreams) == 0:
		p.put(`<p>There are none: the configuration names no upstream.</p>`)
	case len(v.Rows) == 0:
		p.put(`<p>None is called “%s”, or in that state. <a href="./">Show all</a></p>`, v.Filter)
	}
	for i := range v.Rows {
		p.upstream(&v.Rows[i])
	}
	if v.Hidden > 0 {
		p.put(`<p>and %d more that matter less: find them by a part of their names.</p>`, v.Hidden)
	}
	p.put(`</section>`)
	p.fleet(v.Fleet)
	p.deliveries(v.Deliveries)
}

// when is markup if it is so.
func when(so bool, m markup) markup {
	if so {
		return m
	}
	return ""
}

// upstream is a row, and what it opens to.
func (p *page) upstream(r *row) {
	why := ""
	if r.State == "refuses" && r.Why != "" {
		why = ": " + string(r.Why)
	}
	p.put(`<details class="upstream" id="u-%s">
<summary>
<span class="name">%s</span>
<span class="state %s">%s %s%s</span>
<span class="figure"><b>%s</b>/s allowed</span>
<span class="figure"><b>%s</b>/s waited</span>
<span class="figure"><b>%s</b>/s refused</span>
<span class="figure"><b>%s</b>/s throttled</span>
<span class="figure">p50 <b>%s</b>, p99 <b>%s</b></span>`, r.Name, r.Name, r.State, sign(r.State), r.State, why,
		per(r.Allowed), per(r.Waited), per(r.Refused), per(r.Throttled), span(r.P50), span(r.P99))
	if r.Least >= 0 {
		p.put(`<span class="figure"><b>%d%%</b> left</span>`, r.Least)
	} else {
		p.put(`<span class="figure"></span>`)
	}
	p.put("%s\n</summary>\n<div class=\"inner\">", r.Plot)
	p.limits(r.Limits)
	p.breakers(r.Name, r.Breakers)
	p.pauses(r.Name, r.Pauses)
	p.flights(r.Flights)
	p.model(r.Model)
	p.put("<p>The budget would pay for %d retries now.</p>", r.RetriesLeft)
	p.toConfig(r.Name)
	p.put("</div>\n</details>")
}

// table begins a table.
func (p *page) table(caption string, columns ...string) {
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

func (p *page) limits(all []status.Limit) {
	if len(all) == 0 {
		return
	}
	p.table("Limits", "Limit", "Key", "Configured", "Now", "Left", "Full in", "Paused")
	for i := range all {
		l := &all[i]
		key := l.Key
		if l.KeysKnown > 0 {
			key = fmt.Sprintf("(%d keys)", l.KeysKnown)
		}
		p.put(`<tr><td>%s<td>%s<td>%s %s<td>%s<td>%d of %d<td>%s<td>%s`, l.Name, key, l.Rule, l.Unit, l.RateNow(), l.Left, l.Full, l.FullIn(), lasting(l.PausedMS))
	}
	p.put("</tbody></table>")
}

func (p *page) breakers(upstream string, all []status.Breaker) {
	if len(all) == 0 {
		return
	}
	p.table("Breakers", "Key", "State", "Why", "Failures", "Tries again in", "By hand")
	for _, b := range all {
		again := lasting(b.WaitMS)
		if b.WaitMS < 0 {
			again = "until told otherwise"
		}
		p.put(`<tr><td>%s<td class="state %s">%s %s%s<td>%s<td>%d<td>%s<td>`, b.Key, b.State, sign(b.State), b.State, when(b.Forced, ", by hand"), b.Why, b.Failures, again)
		d := deed{Upstream: upstream, Key: b.Key, Keyed: b.Key != ""}
		for _, do := range []struct{ do, say string }{{"open", "Open"}, {"close", "Close"}, {"reset", "Reset"}} {
			d.Do = do.do
			p.button(&d, do.say)
		}
	}
	p.put("</tbody></table>")
}

func (p *page) pauses(upstream string, all []status.Pause) {
	p.table("Pauses", "Of", "Why", "For", "Told to", "By hand")
	for i := range all {
		s := &all[i]
		p.put(`<tr><td>%s<td>%s<td>%s<td>%s<td>`, s.Whom(), s.Reason, s.Long(), s.By)
		p.button(&deed{Upstream: upstream, Do: "resume", Limit: s.Limit, Key: s.Key, Keyed: s.Limit != "" && s.Scope != "",
			Pool: s.Pool, Pooled: s.Of == "pool", Operation: s.Operation}, "Lift")
	}
	if len(all) == 0 {
		p.put(`<tr><td colspan="4">none<td>`)
	} else {
		p.put(`<tr><td colspan="4"><td>`)
	}
	p.button(&deed{Upstream: upstream, Do: "pause"}, "Pause all calls")
	p.put("</tbody></table>")
}

func (p *page) flights(all []status.Flight) {
	if len(all) == 0 {
		return
	}
	p.table("In flight", "Operation", "State", "Now", "Bound", "Waiting", "Refused", "Best answers")
	for _, f := range all {
		name, best := f.Operation, ""
		if name == "" {
			name = "(all)"
		}
		if f.Rate > 0 {
			best = per(f.Rate) + "/s"
		}
		p.put(`<tr><td>%s<td>%s<td>%d<td>%d<td>%d<td>%d<td>%s`, name, f.State, f.InFlight, f.Bound, f.Waiting, f.Refused, best)
	}
	p.put("</tbody></table>")
}

func (p *page) model(m *status.Model) {
	if m == nil {
		return
	}
	if len(m.Tiers) > 0 {
		p.table("Tiers", "Tier", "State", "Takes", "Answered", "Failed", "Skipped")
		for _, t := range m.Tiers {
			p.put(`<tr><td>%s<td class="state %s">%s %s %s<td>%s<td>%d<td>%d<td>%d`, t.Name, t.State, sign(t.State), t.State, t.Why, lasting(t.TakesMS), t.Answered, t.Failed, t.Skipped)
		}
		p.put("</tbody></table>")
	}
	if c := m.Cache; c != nil {
		p.put(`<p>Cache: %d entries, %d bytes; %d hits, %d of what was stale, %d misses.</p>`, c.Entries, c.Bytes, c.Hits, c.Stale, c.Misses)
	}
}

func (p *page) fleet(f *status.Fleet) {
	if f == nil {
		return
	}
	p.put(`<section aria-label="Fleet"><h2>Fleet</h2>
<p>Shared through %s as %s; %d processes are known.</p>`, f.Store, f.Client, f.Instances)
	if f.AwayMS > 0 {
		p.put(`<p class="trouble">■ The store has been away for %s: %s; %d units were let go since.</p>`, lasting(f.AwayMS), f.Why, f.Spent)
	}
	if len(f.Parts) > 0 {
		p.table("", "Upstream", "State", "Part", "Lasts", "Silent")
		for _, t := range f.Parts {
			p.put(`<tr><td>%s<td>%s<td>%.3g<td>%s<td>%.3g`, t.Upstream, t.State, t.Part, lasting(t.LastsMS), t.Silent)
		}
		p.put("</tbody></table>")
	}
	p.put("</section>")
}

func (p *page) deliveries(d *status.Deliveries) {
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
