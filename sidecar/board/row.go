package board

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// rowID begins the ids of rows; the upstream's name follows.
const rowID = "u-"

// row is an upstream in a line, which leads to what it opens to.
func (p *page) row(r *Row, plotted, opened bool) {
	to, expanded := "?open="+url.QueryEscape(r.Name)+"#"+rowID+r.Name, markup("")
	if opened {
		to, expanded = "./#"+rowID+r.Name, ` aria-expanded="true"`
	}
	p.put(`<div class="upstream" id="%s"><a class="row" href="%s"%s>`, rowID+r.Name, to, expanded)
	p.line(r)
	if plotted {
		p.WriteString(string(r.plot()))
	}
	p.put("</a>")
	if opened {
		p.put(`<div class="inner">`)
		p.inner(r)
		p.put("</div>")
	}
	p.put("</div>")
}

// line is what the row of an upstream says, but for its plot.
func (p *page) line(r *Row) {
	why := ""
	if reason := r.Why(); r.State == "refuses" && reason != "" {
		why = ": " + string(reason)
	}
	p.put(`<span class="name">%s</span><span class="state %s">%s %s%s</span>`, r.Name, r.State, sign(r.State), r.State, why)
	for _, f := range []struct {
		n  float64
		of markup
	}{{r.Allowed, "allowed"}, {r.Waited, "waited"}, {r.Refused, "refused"}, {r.Throttled, "throttled"}} {
		p.put(`<span><b>%s</b>/s %s</span>`, per(f.n), f.of)
	}
	p.put(`<span>p50 <b>%s</b>, p99 <b>%s</b></span>`, span(since(r.P50MS)), span(since(r.P99MS)))
	if r.Least >= 0 {
		p.put(`<span><b>%d%%</b> left</span>`, r.Least)
	} else {
		p.put(`<span></span>`)
	}
}

// since is so many milliseconds.
func since(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// inner is what a row opens to.
func (p *page) inner(r *Row) {
	p.WriteString(string(chart(r.past())))
	p.refused(r)
	p.limits(r.Limits)
	p.breakers(r.Name, r.Breakers)
	p.changes(r.Changes)
	p.pauses(r.Name, r.Pauses, r.PausesInAll)
	p.flights(r.Flights)
	p.model(r.Model)
	p.put("<p>The budget would pay for %d retries now.</p>", r.RetriesLeft)
	p.toConfig(r.Name)
}

// refused is why calls were refused, and how long others waited, in the latest 10 s.
func (p *page) refused(r *Row) {
	var all []string
	for why := range r.By {
		all = append(all, string(why))
	}
	slices.SortFunc(all, func(a, b string) int { return int(1e6 * (r.By[weir.Reason(b)] - r.By[weir.Reason(a)])) })
	for i, why := range all {
		all[i] = fmt.Sprintf("%s %s/s", why, per(r.By[weir.Reason(why)]))
	}
	if len(all) > 0 {
		p.put("<p>Refused: %s.</p>", strings.Join(all, ", "))
	}
	if r.Waited > 0 {
		p.put("<p>Waits that ended in a permit: %s/s, 99%% of them within %s.</p>", per(r.Waited), span(since(r.Wait99)))
	}
	if r.Waiting > 0 {
		p.put("<p>%d calls wait for a slot.</p>", r.Waiting)
	}
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
		p.put(`<tr><td>%s<td>%s<td>%s %s<td>%s<td>%d of %d%s<td>%s<td>%s`, l.Name, key, l.Rule, l.Unit, l.RateNow(), l.Left, l.Full, l.Held(), l.FullIn(), lasting(l.PausedMS))
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

// mostChanges is how many changes of breakers an upstream shows.
const mostChanges = 12

// changes are those of breakers, the latest first.
func (p *page) changes(all []Change) {
	if len(all) == 0 {
		return
	}
	p.table("What the breakers did", "When", "Key", "From", "To", "Why")
	for i, c := range slices.Backward(all) {
		if len(all)-i > mostChanges {
			break
		}
		p.put(`<tr><td>%s<td>%s<td>%s %s<td class="state %s">%s %s<td>%s`, c.At.UTC().Format(time.TimeOnly+"Z"), c.Key, sign(c.From), c.From, c.To, sign(c.To), c.To, c.Why)
	}
	p.put("</tbody></table>")
}

func (p *page) pauses(upstream string, all []status.Pause, known int) {
	p.table("Pauses", "Of", "Why", "For", "Told to", "By hand")
	for i := range all {
		s := &all[i]
		p.put(`<tr><td>%s<td>%s<td>%s<td>%s<td>`, s.Whom(), s.Reason, s.Long(), s.By)
		p.button(&deed{Upstream: upstream, Do: "resume", Limit: s.Limit, Key: s.Key, Keyed: s.Limit != "" && s.Scope != "",
			Pool: s.Pool, Pooled: s.Of == "pool", Operation: s.Operation}, "Lift")
	}
	switch {
	case known > len(all):
		p.put(`<tr><td colspan="4">and %d more<td>`, known-len(all))
	case len(all) == 0:
		p.put(`<tr><td colspan="4">none<td>`)
	default:
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
