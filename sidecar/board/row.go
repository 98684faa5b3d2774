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

// rowID is the prefix of the ids of rows, before the upstream's name.
const rowID = "u-"

// row writes an upstream as a line that links to its details.
func (p *page) row(r *Row, plotted, opened bool) {
	to, expanded := "?open="+url.QueryEscape(r.Name)+"#"+rowID+r.Name, markup("")
	if opened {
		to, expanded = "./#"+rowID+r.Name, ` aria-expanded="true"`
	}
	p.Put(`<div class="upstream" id="%s"><a class="row" href="%s"%s>`, rowID+r.Name, to, expanded)
	p.line(r)
	if plotted {
		p.WriteString(string(r.plot()))
	}
	p.Put("</a>")
	if opened {
		p.Put(`<div class="inner">`)
		p.inner(r)
		p.Put("</div>")
	}
	p.Put("</div>")
}

// line writes the row of an upstream, without its plot.
func (p *page) line(r *Row) {
	why := markup("")
	if reason := r.Why(); r.State == "refusing" && reason != "" {
		why = ": " + breakable(string(reason))
	}
	p.Put(`<span class="name">%s</span><span class="state %s">%s %s%s</span>`, r.Name, r.State, sign(r.State), r.State, why)
	for _, f := range []struct {
		n  float64
		of markup
	}{{r.Allowed, "allowed"}, {r.Waited, "waited"}, {r.Throttled, "throttled"}, {r.Failed, "failed"}, {r.Refused, "refused"}} {
		p.Put(`<span><b>%s</b>/s <i>%s</i></span>`, per(f.n), f.of)
	}
	p.Put(`<span><b>%s</b> <i>p50</i></span><span><b>%s</b> <i>p99</i></span>`, span(since(r.P50MS)), span(since(r.P99MS)))
	if r.Least >= 0 {
		p.Put(`<span><b>%d%%</b> <i>of limit left</i></span>`, r.Least)
	} else {
		p.Put(`<span></span>`)
	}
}

// since converts milliseconds to a duration.
func since(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// inner writes the content of an opened row.
func (p *page) inner(r *Row) {
	p.WriteString(string(chart(r.past())))
	p.refused(r)
	p.limits(r.Limits)
	p.trials(r.Shadow)
	p.breakers(r.Name, r.Breakers)
	p.changes(r.Changes)
	p.pauses(r.Name, r.Pauses, r.PausesInAll)
	p.flights(r.Flights)
	p.model(r.Model)
	p.Put("<p>The retry budget allows %d retries now.</p>", r.RetriesLeft)
	p.toConfig(r.Name)
}

// refused writes why calls were refused, and how long others waited, in the last 10 s.
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
		p.Put("<p>Refused: %s.</p>", strings.Join(all, ", "))
	}
	if r.Waited > 0 {
		p.Put("<p>Calls allowed after a wait: %s/s. 99%% of them waited at most %s.</p>", per(r.Waited), span(since(r.Wait99)))
	}
	if r.Waiting > 0 {
		p.Put("<p>Calls that wait for a free slot now: %d.</p>", r.Waiting)
	}
}

func (p *page) limits(all []status.Limit) {
	if len(all) == 0 {
		return
	}
	p.Table("Limits", "Limit", "Key", "Configured", "Rate now", "Left", "Full in", "Paused for")
	for i := range all {
		l := &all[i]
		key := l.Key
		if l.KeysKnown > 0 {
			key = fmt.Sprintf("(%d keys)", l.KeysKnown)
		}
		p.Cells(l.Name, key, l.Configured(), l.RateNow(), l.Remaining(" of "), l.FullIn(), lasting(l.PausedMS))
	}
	p.EndTable()
}

// trials writes what limits with shadow would have done.
func (p *page) trials(all []status.Trial) {
	if len(all) == 0 {
		return
	}
	p.Table("Shadow limits", status.TrialColumns...)
	for i := range all {
		for _, row := range all[i].Cells() {
			p.Cells(row[0], row[1], row[2], row[3], row[4], row[5], row[6])
		}
	}
	p.EndTable()
}

func (p *page) breakers(upstream string, all []status.Breaker) {
	if len(all) == 0 {
		return
	}
	p.Table("Breakers", "Key", "State", "Cause", "Failures", "Next test in", "Operator")
	for _, b := range all {
		again := lasting(b.WaitMS)
		if b.WaitMS < 0 {
			again = "none until it is reset"
		}
		buttons := markup("")
		d := deed{Upstream: upstream, Key: b.Key, Keyed: b.Key != ""}
		for _, do := range []struct{ do, say string }{{"open", "Open"}, {"close", "Close"}, {"reset", "Reset"}} {
			d.Do = do.do
			buttons += p.button(&d, do.say)
		}
		p.Cells(b.Key, marked(b.State, text("%s %s%s", sign(b.State), b.State, when(b.Forced, ", by operator"))), causeOf(b.Why), b.Failures, again, buttons)
	}
	p.EndTable()
}

// mostChanges is how many breaker changes of an upstream are shown.
const mostChanges = 12

// changes writes breaker changes, the latest first.
func (p *page) changes(all []Change) {
	if len(all) == 0 {
		return
	}
	p.Table("Breaker changes", "Time", "Key", "From", "To", "Cause")
	for i, c := range slices.Backward(all) {
		if len(all)-i > mostChanges {
			break
		}
		p.Cells(clockTime(c.At), c.Key, sign(c.From)+" "+c.From, marked(c.To, text("%s %s", sign(c.To), c.To)), causeOf(c.Why))
	}
	p.EndTable()
}

func (p *page) pauses(upstream string, all []status.Pause, known int) {
	p.Table("Pauses", "Paused", "Cause", "For", "First process", "Operator")
	for i := range all {
		s := &all[i]
		p.Cells(s.Whom(), pauseCause(s.Reason), s.Long(), s.By, p.button(&deed{Upstream: upstream, Do: "resume", Limit: s.Limit, Key: s.Key, Keyed: s.Limit != "" && s.Scope != "",
			Pool: s.Pool, Pooled: s.Of == "pool", Operation: s.Operation}, "Resume"))
	}
	if known > len(all) {
		p.Cells(fmt.Sprintf("and %d more", known-len(all)), "", "", "", "")
	}
	if len(all) == 0 {
		p.Cells("none", "", "", "", "")
	}
	p.Put("</tbody></table>\n%s", p.button(&deed{Upstream: upstream, Do: "pause"}, "Pause all calls"))
}

func (p *page) flights(all []status.Flight) {
	if len(all) == 0 {
		return
	}
	p.Table("Calls in flight", "Operation", "State", "Now", "Bound", "Waiting", "Refused", "Best response rate")
	for _, f := range all {
		name, best := f.Operation, ""
		if name == "" {
			name = "(all)"
		}
		if f.Rate > 0 {
			best = per(f.Rate) + "/s"
		}
		p.Cells(name, f.State, f.InFlight, f.Bound, f.Waiting, f.Refused, best)
	}
	p.EndTable()
}

func (p *page) model(m *status.Model) {
	if m == nil {
		return
	}
	if len(m.Tiers) > 0 {
		p.Table("Tiers", "Tier", "State", "Cause", "Median time", "Answered", "Failed", "Skipped")
		for _, t := range m.Tiers {
			p.Cells(t.Name, marked(t.State, text("%s %s", sign(t.State), t.State)), causeOf(t.Why), lasting(t.TakesMS), t.Answered, t.Failed, t.Skipped)
		}
		p.EndTable()
	}
	if c := m.Cache; c != nil {
		p.Put(`<p>Cache: %d entries in %d bytes, %d hits, %d stale hits, %d misses.</p>`, c.Entries, c.Bytes, c.Hits, c.Stale, c.Misses)
	}
}

// causeOf returns the cause of a breaker's state in words.
func causeOf(why string) string {
	switch why {
	case "failure share":
		return "too many calls failed"
	case "forced":
		return "an operator"
	}
	return why
}

// pauseCause returns the cause of a pause in words.
func pauseCause(reason string) string {
	switch reason {
	case "rate":
		return "the upstream asked to wait"
	case "quota":
		return "the upstream's quota is used up"
	case "manual":
		return "an operator"
	case "manual here":
		return "an operator, this process only"
	}
	return reason
}
