package board

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// why explains a call by its ID.
func (b *Board) why(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	if id == "" {
		b.show(w, r, http.StatusOK, func(p *page) { p.why("", nil) })
		return
	}
	e := b.Page.Explain(r.Context(), id, time.Time{})
	code, _ := e.Lack()
	b.show(w, r, max(code, http.StatusOK), func(p *page) { p.why(id, e) })
}

// why writes that page.
func (p *page) why(id string, e *status.Explained) {
	p.head("weir: explain a call", false)
	p.Put(`<header>
<h1>Explain a call</h1>`)
	p.askWhy(id)
	p.Put(`<p><a href="./">Back</a></p>
</header>
<main>`)
	if e != nil {
		if code, lack := e.Lack(); code != 0 {
			p.Put(`<p class="trouble" role="alert">✖ %s</p>`, lack)
		} else {
			p.explained(e)
		}
	}
	p.Put("</main>\n</body>\n</html>")
}

// askWhy writes the form that asks for an ID.
func (p *page) askWhy(id string) {
	p.Put(`<form method="get" action="why">
<label>Explain a call by its X-Correlation-Id <input name="id" value="%s" type="search" maxlength="128"></label>
<button>Explain</button>
</form>`, id)
}

// explained writes the known facts about the calls with an ID.
func (p *page) explained(e *status.Explained) {
	for i := range e.Calls {
		p.call(e.Calls[i].Call, e.Calls[i].Then)
	}
	if s := e.Second; s != nil {
		at := s.At.UTC().Format("2006-01-02 15:04:05 UTC")
		if len(s.Lines) == 0 {
			p.Put(`<p>This weir has no record of the call. In the same second (%s), it allowed all calls immediately.</p>`, at)
		} else {
			p.Put(`<p>This weir has no record of the call. These are its decisions in the same second (%s).</p>`, at)
			p.decisions(s.Lines)
		}
	}
	if e.Error != "" {
		p.Put(`<p class="trouble">▲ There may be more calls with this ID: %s</p>`, e.Error)
	}
}

// call writes one call: its result, its attempts on a time axis, its limits, and possible changes.
func (p *page) call(c *why.Call, then []why.Line) {
	p.Put(`<section class="call" aria-label="Call"><p class="lead state %s">%s %s</p>`, stateOfCall(c), sign(stateOfCall(c)), c.Headline())
	facts := []string{"It ended at " + c.At.UTC().Format("2006-01-02 15:04:05.000 UTC") + ", " + why.Span(c.TookMS) + " after its start."}
	if c.Weir != "" {
		facts = append(facts, "The process "+c.Weir+" made it.")
	}
	if c.Key != "" {
		facts = append(facts, "Its key is "+c.Key+".")
	}
	if c.Why != "" {
		label := c.WhyLabel()
		facts = append(facts, sentence(strings.ToUpper(label[:1])+label[1:], c.Why))
	}
	p.Put(`<p>%s</p>`, strings.Join(facts, " "))
	p.timeline(c)
	if len(c.Limits) > 0 {
		p.Table("Limits when the call ended", "Limit", "Configured", "Cost", "Left", "Paused for", "Defined in")
		for i := range c.Limits {
			l := &c.Limits[i]
			name := text("%s", strings.TrimSpace(l.Name+" "+l.Key))
			if l.Refused {
				name = marked("refusing", text("%s %s (refused the call)", sign("refusing"), name))
			}
			paused := ""
			if l.PausedMS != 0 {
				paused = why.Span(l.PausedMS)
			}
			p.Cells(name, l.Rule, l.Costs(), l.Remaining(), paused, breakable(l.At))
		}
		p.EndTable()
	}
	if len(then) > 0 {
		p.Put(`<h2>Decisions of this upstream in the same second</h2>`)
		p.decisions(then)
	}
	p.advice(c)
	p.Put("</section>")
}

// stateOfCall returns the state of the upstream that a call indicates.
func stateOfCall(c *why.Call) string {
	switch {
	case c.Kind == why.Refused && c.Reason == "circuit_open":
		return "open"
	case c.Kind == why.Refused && c.Reason == "paused":
		return "paused"
	case c.Kind == why.Refused:
		return "refusing"
	case c.Class == "throttled":
		return "throttled"
	case c.Kind == why.Failed:
		return "failing"
	case c.Kind == why.Waited:
		return "waiting"
	}
	return "ok"
}

// axisUnits is the width of the time axis in units of its bars.
const axisUnits = 1000

// timeline writes the history of each attempt, with bars on a shared axis.
func (p *page) timeline(c *why.Call) {
	if len(c.Attempts) == 0 {
		return
	}
	length, before := c.TookMS, 0
	end := 0.0
	for i := range c.Attempts {
		a := &c.Attempts[i]
		end += max(0, a.RestedMS) + max(0, a.WaitedMS) + max(0, a.TookMS)
	}
	length = max(length, end, 0.001)
	p.Put(`<h2>Attempts</h2>
<p class="legend"><span class="key"><i class="rested"></i>pause before a retry</span> <span class="key"><i class="waited"></i>waited for its turn</span> <span class="key"><i class="allowed"></i>succeeded</span> <span class="key"><i class="throttled"></i>throttled by the upstream</span> <span class="key"><i class="failed"></i>failed</span> <span class="key"><i class="refused"></i>refused by weir</span></p>
<ol class="timeline">`)
	at := 0.0
	for i := range c.Attempts {
		a := &c.Attempts[i]
		if a.N > before+1 {
			p.Put(`<li>%s not recorded in detail`, many(int64(a.N-before-1), "attempt"))
		}
		before = a.N
		p.Put(`<li><b>Attempt %d</b>: %s, %s.
<svg class="bar" viewBox="0 0 %d 10" preserveAspectRatio="none" aria-hidden="true">`, a.N, a.Before(), a.End(), axisUnits)
		bar := func(class markup, ms float64, least int) {
			ms = max(0, ms)
			from, to := int(axisUnits*at/length), int(axisUnits*(at+ms)/length)
			if width := max(to-from, least); width > 0 {
				p.Put(`<rect class="%s" x="%d" width="%d" height="10"/>`, class, min(from, axisUnits-width), width)
			}
			at += ms
		}
		bar("rested", a.RestedMS, 0)
		bar("waited", a.WaitedMS, 0)
		bar(classOf(a), a.TookMS, 4) // always visible
		p.Put("</svg>")
	}
	p.Put(`</ol>
<p class="ends"><span>0</span><span>%s</span><span>%s</span></p>`, why.Span(length/2), why.Span(length))
	if c.HeldBack > 0 {
		p.Put(`<p>%s not made, because no attempt of the upstream's calls succeeded at that time.</p>`, wasWere(c.HeldBack, "more attempt"))
	}
}

func wasWere(n int, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return fmt.Sprintf("%d %ss were", n, what)
}

// classOf returns the color for the result of an attempt.
func classOf(a *why.Attempt) markup {
	switch {
	case a.Reason != "":
		return "refused"
	case a.Class == "ok":
		return "allowed"
	case a.Class == "throttled":
		return "throttled"
	case a.Class == "canceled":
		return "rested"
	}
	return "failed"
}

// decisions writes the decisions of a second.
func (p *page) decisions(lines []why.Line) {
	p.Table("", "Time", "Upstream", "Calls", "Decision", "Limit", "Configured", "Defined in")
	for i := range lines {
		l := &lines[i]
		limit := l.Limit
		if l.By != "" {
			limit += " of each " + l.By
		}
		p.Cells(l.From.UTC().Format("15:04:05.0 UTC"), strings.TrimSpace(l.Upstream+" "+l.Operation), l.N, l.Decision, limit, l.Rule, breakable(l.At))
	}
	p.EndTable()
}

// advice writes how to avoid an unwanted result. Each field links to its value and to its description.
func (p *page) advice(c *why.Call) {
	if len(c.Change) == 0 {
		return
	}
	p.Put(`<h2>What you can change</h2><ul class="advice">`)
	for i := range c.Change {
		x := &c.Change[i]
		p.Put("<li>%s", sentence(upperFirst(x.Say), ""))
		if x.Field == "" {
			continue
		}
		field, at := "upstreams."+c.Upstream+"."+x.Field, markup("")
		if strings.HasPrefix(x.Field, "store.") {
			field = x.Field
		}
		if x.At != "" {
			at = " (" + breakable(x.At) + ")"
		}
		p.Put(` Setting: <a href="config?q=%s">%s</a>%s.`, url.QueryEscape(field), breakable(field), at)
		p.doc(sectionOf(x.Field), "Description")
	}
	p.Put("</ul>")
}

// sections are the sections of the reference that describe an upstream's fields, by the first part of their names.
var sections = map[string]string{
	"store":      "docs/reference/configuration.md#store",
	"limits":     "docs/reference/configuration.md#upstreamsnamelimitsname",
	"operations": "docs/reference/configuration.md#upstreamsnameoperationsname",
	"breaker":    "docs/reference/configuration.md#upstreamsnamebreaker",
	"retry":      "docs/reference/configuration.md#upstreamsnameretry",
	"budget":     "docs/reference/configuration.md#upstreamsnamebudget",
	"timeouts":   "docs/reference/configuration.md#upstreamsnametimeouts",
	"classify":   "docs/reference/configuration.md#upstreamsnameclassify",
	"websocket":  "docs/reference/configuration.md#upstreamsnamewebsocket",
}

// sectionOf returns the section that describes a field.
func sectionOf(field string) string {
	top, _, _ := strings.Cut(field, ".")
	return cmp.Or(sections[top], "docs/reference/configuration.md#upstreamsname")
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
