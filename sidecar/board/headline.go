package board

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// source is the base URL of the documentation pages that problems and advice link to.
const source = "https://github.com/seed1158cd35/weir/blob/main/"

// mostProblems is how many problems are described. Further ones are counted.
const mostProblems = 6

// A Problem is a condition that may require an operator's action.
type Problem struct {
	State    string `json:"state"`              // the upstream's state, or trouble
	Upstream string `json:"upstream,omitempty"` // "" if it concerns all upstreams
	Text     string `json:"text"`               // one sentence: the problem, its cause, and its start
	Help     string `json:"help"`               // what to do
	Page     string `json:"page,omitempty"`     // of the documentation

	dead bool // it concerns dead letters
}

// summarize sets the headline of a view, and its problems, the worst first. The rows must be sorted.
func (v *View) summarize() {
	v.instance()
	for _, r := range v.Upstreams {
		if severity(r.State) <= severity("waiting") {
			break
		}
		if r.State != "trouble" { // its cause is among the troubles
			v.add(func() Problem { return r.problem(v.At) })
		}
	}
	v.deadLetters()
	v.Headline = v.headline()
}

// headline returns one sentence: that all is well, or the worst problem. If several upstreams have the same state, it
// contains their number.
func (v *View) headline() string {
	if len(v.Problems) == 0 {
		return v.calm()
	}
	first := &v.Problems[0]
	n := 0
	for _, r := range v.Upstreams {
		if r.State == first.State {
			n++
		}
	}
	if what, known := several[first.State]; known && n > 1 && !first.dead {
		return fmt.Sprintf("%d of %d upstreams, including %s, %s.", n, v.Known, first.Upstream, what)
	}
	return first.Text
}

// several describes what upstreams in a state do.
var several = map[string]string{
	"throttled": "throttle many attempts", "failing": "have many failed attempts", "refusing": "have calls that weir refuses",
	"paused": "are paused", "half-open": "are recovering", "open": "are down",
}

// add adds a problem, and describes it if there is room.
func (v *View) add(describe func() Problem) {
	if v.ProblemsKnown++; len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, describe())
	}
}

func (v *View) found(p Problem) { v.add(func() Problem { return p }) }

// calm returns the headline of a view without problems.
func (v *View) calm() string {
	switch v.Known {
	case 0:
		return "No upstream is configured, so weir has nothing to do."
	case 1:
		return "All is well: the upstream works, and no call was refused in the last 10 seconds."
	}
	return fmt.Sprintf("All is well: all %d upstreams work, and no call was refused in the last 10 seconds.", v.Known)
}

// instance adds the problems that do not belong to one upstream.
func (v *View) instance() {
	if v.Draining {
		v.found(Problem{State: "trouble", Text: "This weir is shutting down.", Help: "It completes the calls in progress. Send new calls to another weir."})
	}
	store := ""
	if f := v.Fleet; f != nil && f.AwayMS > 0 {
		store = "store " + f.Store
		v.found(Problem{
			State: "trouble", Text: sentence(fmt.Sprintf("The %s store has not answered since %s", f.Store, clockTime(v.At.Add(-time.Duration(f.AwayMS)*time.Millisecond).Round(time.Second))), f.Why),
			Help: "Check that the store runs and that this machine reaches it. Until it answers, each process uses its own part of each limit.", Page: "docs/runbooks/store-away.md",
		})
	}
	for _, t := range v.Troubles {
		if t.With == store {
			continue
		}
		text := "weir has a problem with " + t.With
		if t.Upstream != "" {
			text = fmt.Sprintf("weir cannot call %s because of a problem with %s", t.Upstream, t.With)
		}
		if !t.Since.IsZero() {
			text += ", since " + clockTime(t.Since)
		}
		v.found(Problem{State: "trouble", Upstream: t.Upstream, Text: sentence(text, t.Error), Help: sentence(t.Help, ""), Page: "docs/runbooks/trouble.md"})
	}
	if c := v.Config; c != nil && c.Error != "" {
		v.found(Problem{
			State: "trouble", Text: sentence("The reload at "+clockTime(c.FailedAt)+" failed, and the earlier configuration stays in force", c.Error),
			Help: "Correct the file, check it with weir check, and reload it.", Page: "docs/runbooks/reload-failed.md",
		})
	}
	if d := v.Deliveries; d != nil && d.Error != "" {
		v.found(Problem{State: "trouble", Text: sentence("The store of deliveries does not answer", d.Error), Help: "Check that the store runs and that this machine reaches it. Deliveries wait until it answers."})
	}
	if v.Fleet != nil && v.Fleet.Found != nil {
		for i := range v.Fleet.Found.Cold {
			v.add(func() Problem { return coldProblem(v.Fleet.Store, &v.Fleet.Found.Cold[i]) })
		}
	}
}

func coldProblem(store string, c *status.Cold) Problem {
	p := Problem{
		State: "trouble", Upstream: c.Upstream, Text: fmt.Sprintf("The %s store is new or was emptied, so weir does not know the usage of the limits of %s.", store, c.Upstream),
		Help: "These limits count as used up until their windows end. If nothing was used, run weir store init.", Page: "docs/runbooks/store-cold.md",
	}
	if c.Mode == limit.ColdShare || c.Mode == limit.ColdFull {
		p.Help = "Calls continue as the setting cold specifies. Earlier usage may exceed the limit."
	}
	return p
}

// deadLetters adds problems for dead letters.
func (v *View) deadLetters() {
	if v.Deliveries == nil {
		return
	}
	for i := range v.Deliveries.Upstreams {
		l := &v.Deliveries.Upstreams[i]
		if l.Failed == 0 {
			continue
		}
		since := ""
		if !l.FailedSince.IsZero() {
			since = ", the oldest since " + clockTime(l.FailedSince)
		}
		v.found(Problem{
			State: "failing", Upstream: l.Upstream, Text: fmt.Sprintf("%s to %s could not be delivered%s.", many(l.Failed, "message"), l.Upstream, since),
			Help: "Find out why, then send the dead letters again or drop them.", Page: "docs/runbooks/dead-letters.md", dead: true,
		})
	}
}

// problem describes what the state of a row means.
func (r *Row) problem(now time.Time) Problem {
	p := Problem{State: r.State, Upstream: r.Name}
	switch r.State {
	case "open", "half-open":
		r.breakerProblem(&p)
	case "paused":
		r.pauseProblem(&p, now)
	case "refusing":
		r.refusalProblem(&p, now)
	case "failing":
		p.Text = fmt.Sprintf("%s of the attempts to call %s fail%s%s.", share(r.Failed, r.attempts()), r.Name, r.lastError(), r.since(now, func(s *sample) bool { return s.failed > 0 }))
		p.Help, p.Page = "Check the upstream. weir stops calling it if the failures continue.", "docs/runbooks/upstream-failing.md"
	case "throttled":
		p.Text = fmt.Sprintf("%s throttles %s of the attempts%s, although weir's limits allow them.", r.Name, share(r.Throttled, r.attempts()), r.since(now, func(s *sample) bool { return s.throttled > 0 }))
		p.Help, p.Page = "Lower the limits to what this upstream allows, or find out which other programs call it.", "docs/runbooks/high-throttling.md"
	}
	return p
}

// attempts returns the approximate number of attempts per second, from calls that ended in a permit.
func (r *Row) attempts() float64 { return max(r.Allowed+r.Waited, r.Throttled+r.Failed) }

func (r *Row) breakerProblem(p *Problem) {
	var worst *status.Breaker
	n := 0
	for i := range r.Breakers {
		if b := &r.Breakers[i]; b.State == r.State {
			if n++; worst == nil {
				worst = b
			}
		}
	}
	what := r.Name
	if worst.Key != "" {
		what += " (" + worst.Key + ")"
	}
	if n > 1 {
		what = fmt.Sprintf("%s and %s", what, many(int64(n-1), "other breaker"))
	}
	since, cause := r.opened(worst)
	p.Page = "docs/runbooks/breaker-open.md"
	switch {
	case worst.Forced:
		p.Text = fmt.Sprintf("An operator opened the breaker of %s%s, so weir makes no calls to it.", what, since)
		p.Help = "Reset the breaker when calls may continue."
		p.Page = "docs/how-to/pause-and-resume.md"
	case r.State == "half-open":
		p.Text = fmt.Sprintf("%s is recovering: its breaker opened%s%s, and weir now tests it with single calls.", what, since, cause)
		p.Help = "Wait: the breaker closes when the tests succeed, and opens again when they fail."
	default:
		p.Text = fmt.Sprintf("%s is down: its breaker opened%s%s%s.", what, since, cause, r.lastError())
		p.Help = "Check the upstream. weir refuses its calls, tests it with single calls, and resumes when they succeed."
	}
}

// opened returns when and why a breaker left the closed state, in words.
func (r *Row) opened(b *status.Breaker) (since, cause string) {
	why := b.Why
	for i := len(r.Changes) - 1; i >= 0; i-- {
		c := &r.Changes[i]
		if c.Key != b.Key {
			continue
		}
		if c.To == "closed" {
			break
		}
		since = " at " + clockTime(c.At)
		if why = c.Why; c.From == "closed" {
			break
		}
	}
	switch why {
	case "too many failures", "failures in a row":
		cause = " after " + why
	case "failure share":
		cause = " because too many of its calls failed"
	case "probe failed":
		cause = " again because a test call failed"
	}
	return since, cause
}

// lastError returns the upstream's latest error in words.
func (r *Row) lastError() string {
	if r.of == nil {
		return ""
	}
	e := status.RetriesOf(r.of, r.at)
	if e == nil || e.Last == nil {
		return ""
	}
	return fmt.Sprintf(" (last error: %s)", cmp.Or(e.Last.Code, e.Last.Class))
}

func (r *Row) pauseProblem(p *Problem, now time.Time) {
	first := &r.Pauses[0] // the longest
	what := "calls to " + r.Name
	if first.Of != "upstream" {
		what += " (" + first.Whom() + ")"
	}
	until := " until an operator resumes them"
	if first.LeftMS >= 0 {
		until = " until " + clockTime(now.Add(time.Duration(first.LeftMS)*time.Millisecond).Round(time.Second))
	}
	p.Page = "docs/how-to/pause-and-resume.md"
	if strings.HasPrefix(first.Reason, "manual") {
		p.Text = fmt.Sprintf("An operator paused %s%s.", what, until)
		p.Help = "Resume them with the button of this upstream or with weir resume."
		return
	}
	p.Text = fmt.Sprintf("weir holds back %s%s, because the upstream asked it to wait.", what, until)
	p.Help = "If this happens often, lower the limits to what this upstream allows."
}

// refusals explains each reason of a refusal: the cause, what to do, and the page with details.
var refusals = map[weir.Reason]struct{ why, help, page string }{
	weir.RateLimited:        {"its limit is used up", "Raise the limit if the upstream allows more, or max_wait so that calls wait longer for their turn.", "docs/how-to/explain-a-refusal.md"},
	weir.QuotaExhausted:     {"its quota is used up", "Wait until the quota resets, or ask for a higher one.", "docs/runbooks/quota-low.md"},
	weir.ConcurrencyLimited: {"too many calls are in flight", "Find out whether the upstream is slower than usual. Raise concurrency if the upstream can process more calls.", "docs/how-to/explain-a-refusal.md"},
	weir.CircuitOpen:        {"its breaker was open", "Check the upstream.", "docs/runbooks/breaker-open.md"},
	weir.Paused:             {"its calls were paused", "See the pauses of this upstream.", "docs/how-to/pause-and-resume.md"},
	weir.ShuttingDown:       {"this weir is shutting down", "Send the calls to another weir.", ""},
}

func (r *Row) refusalProblem(p *Problem, now time.Time) {
	why, known := refusals[r.Why()]
	if !known {
		why = refusals[weir.RateLimited]
		why.why = "a gate of this program refuses them"
	}
	p.Text = fmt.Sprintf("weir refuses %s of the calls to %s because %s%s.", share(r.Refused, r.Refused+r.Allowed+r.Waited), r.Name, why.why, r.since(now, func(s *sample) bool { return s.refused > 0 }))
	p.Help, p.Page = why.help, why.page
}

// since returns since when a condition is true in each step, in words.
func (r *Row) since(now time.Time, so func(*sample) bool) string {
	all := r.past()
	n := 0
	for n < len(all) && so(&all[len(all)-1-n]) {
		n++
	}
	if n == 0 {
		return ""
	}
	if n == len(all) {
		return fmt.Sprintf(", for more than %v minutes", (kept * step).Minutes())
	}
	return ", since about " + now.Add(-time.Duration(n)*step).UTC().Format("15:04") + " UTC"
}

// share returns a share in percent, in words.
func share(part, whole float64) string {
	if n := 100 * part / whole; n >= 1 {
		return fmt.Sprintf("%.0f%%", n)
	}
	return "less than 1%"
}

func many(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// clockTime formats an instant for the page.
func clockTime(at time.Time) string {
	if time.Since(at) >= 24*time.Hour {
		return at.UTC().Format("2006-01-02 15:04 UTC")
	}
	return at.UTC().Format("15:04:05 UTC")
}

// sentence joins a text and its cause with a colon, and ends it with one full stop.
func sentence(text, cause string) string {
	if cause != "" {
		text += ": " + cause
	}
	return strings.TrimRight(text, ". \n") + "."
}

// headline writes the sentence at the top of the page, and the other problems below it.
func (p *page) headline(v *View) {
	if len(v.Problems) == 0 {
		p.Put(`<div class="headline ok"><p class="lead">%s %s</p></div>`, sign("ok"), v.Headline)
		return
	}
	first := v.Problems[0]
	p.Put(`<div class="headline %s"><p class="lead">%s %s</p>`, first.State, sign(first.State), v.Headline)
	p.Put(`<p>%s`, first.Help)
	p.links(&first)
	p.Put("</p>")
	rest := v.Problems[1:]
	if v.Headline != first.Text { // it summarizes several upstreams
		rest = v.Problems
	}
	if len(rest) > 0 {
		p.Put(`<p>%s:</p><ul>`, title(len(rest) < len(v.Problems), v.ProblemsKnown))
		for i := range rest {
			p.Put(`<li class="state %s">%s %s`, rest[i].State, sign(rest[i].State), rest[i].Text)
			p.links(&rest[i])
		}
		if n := v.ProblemsKnown - len(v.Problems); n > 0 {
			p.Put(`<li>and %d more: see the upstreams below.`, n)
		}
		p.Put("</ul>")
	}
	p.Put("</div>")
}

// title counts the problems of a list: the ones after the first, or all of them.
func title(more bool, n int) string {
	if more {
		return many(int64(n-1), "more problem")
	}
	return many(int64(n), "problem")
}

// links writes links to the place that shows a problem, and to its page of the documentation.
func (p *page) links(of *Problem) {
	switch {
	case of.dead:
		p.Put(` <a href="%s">Dead letters of %s</a>`, toDead(of.Upstream), of.Upstream)
	case of.Upstream != "":
		p.Put(` <a href="./?open=%s#%s">Show %s</a>`, url.QueryEscape(of.Upstream), rowID+url.PathEscape(of.Upstream), of.Upstream)
	}
	if of.Page != "" {
		p.doc(of.Page, "What to do")
	}
}

// doc writes a link to a page of the documentation.
func (p *page) doc(page, say string) {
	p.Put(` <a href="%s" target="_blank" rel="noopener noreferrer">%s</a>`, source+page, say)
}
