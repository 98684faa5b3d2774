package learn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Limit is a limit of an upstream, inferred from its throttles.
type Limit struct {
	Operation string // that the limit counts; "" means all
	Scope     string // by which the limit counts; "" means one limit for all callers
	Unit      string // limit.Requests or "tokens"
	Rate      bucket.Rate
}

// A Finding is what is known about an upstream. Without Limits, Says contains the reason.
type Finding struct {
	Upstream string
	Limits   []Limit
	Says     []string
	Flight   float64 // calls in flight at the rate of the first limit if all take as long as the 99th percentile; 0 if unknown
}

// Findings returns the findings of all upstreams, sorted by name.
func (l *Learner) Findings() (all []Finding) {
	l.flush()
	for _, name := range l.names() {
		u := l.upstreams[name]
		f := Finding{Upstream: name}
		if u.calls.taken+u.calls.throttles > 0 {
			u.fromCalls(&f)
		}
		if len(u.steps) > 0 {
			u.fromSteps(&f)
		}
		for _, one := range sortedNames(u.refused) {
			f.say("weir refused %d calls because of its limit %s: it is unknown whether the upstream would have throttled them", u.refused[one], one)
		}
		if len(f.Says) == 0 {
			f.say("not enough data: the log contains no attempts; set log: attempts and try again after a few hours")
		}
		all = append(all, f)
	}
	return all
}

func (f *Finding) say(format string, args ...any) {
	f.Says = append(f.Says, fmt.Sprintf(format, args...))
}

// A choice is a limit that may explain the throttles, with the steadiness of its rate.
type choice struct {
	limit Limit
	found
	of *estimate
}

func (u *upstream) fromCalls(f *Finding) {
	e := u.calls
	f.say("data: %d attempts, %d of them throttled, from %s to %s", e.taken+e.throttles, e.throttles, instant(e.begun), instant(e.last))
	if e.throttles == 0 {
		f.say("nothing was throttled, so no limit is proposed; %s, so the limit is not lower than that", e.held.text())
		f.flight(e, 0)
		return
	}
	whole, why := e.find()
	best := choice{Limit{Unit: limit.Requests}, whole, e}
	if u.tokens != nil {
		if t, doubt := u.tokens.find(); doubt == noDoubt && (why != noDoubt || t.spread < whole.spread/2) {
			best, why = choice{Limit{Unit: "tokens"}, t, u.tokens}, noDoubt
			f.say("the limit counts tokens, not requests: tokens per second vary by %.0f%% between throttles, requests by %.0f%%", 100*t.spread, 100*whole.spread)
		}
	}
	if parts := u.split(best, why, f); len(parts) > 0 {
		for i := range parts {
			parts[i].tell(f)
		}
		return
	}
	if why != noDoubt {
		f.say("%s", why.text(e))
		f.flight(e, 0)
		return
	}
	best.tell(f)
}

func (d doubt) text(e *estimate) string {
	switch d {
	case few:
		return fmt.Sprintf("not enough data: %d throttles; at least %d intervals between throttles, with %d calls each, are needed", e.throttles, leastSpans, leastCalls)
	case varied:
		return "no limit is proposed: throttles occurred at all rates, so they have no common threshold; other programs may use the upstream, or it throttles because of its load: set adaptive: true"
	}
	return fmt.Sprintf("no limit is proposed: throttles occurred at rates that were also allowed (%s), so the rate is not their cause", e.held.text())
}

// tell adds a choice to a finding, with its reasons.
func (c *choice) tell(f *Finding) {
	one := c.limit
	one.Rate = spoken(c.rate, one.Unit)
	if c.onsets > 0 {
		one.Rate.Burst = max(1, int64(c.burst))
	}
	f.Limits = append(f.Limits, one)
	name := ""
	switch {
	case one.Operation != "":
		name = "operation " + one.Operation + ": "
	case one.Scope != "":
		name = "each " + one.Scope + ": "
	}
	f.say("%sthrottles began at %s %s per second: %s to %s in 80%% of the %d spans between throttles", name, short(c.rate), one.Unit, short(c.low), short(c.high), c.spans)
	if c.of == nil {
		return
	}
	if text := c.of.held.text(); text != "" {
		f.say("%s%s", name, text)
	}
	if c.onsets > 0 {
		f.say("%sburst: after an idle time, %s more than that rate allows passed before the first throttle (lower quartile of %d cases)", name, short(c.burst), c.onsets)
	}
	if one.Unit == limit.Requests {
		f.flight(c.of, c.rate)
	}
}

// flight applies Little's law: the number of calls in flight is the rate times the duration of a call.
func (f *Finding) flight(e *estimate, rate float64) {
	if e.took.n == 0 {
		return
	}
	f.say("in flight: %s on average in the busiest minute; an attempt takes %s s on average, and %s s at the 99th percentile", short(e.held.busy), short(e.took.mean()), short(e.took.slow()))
	if rate > 0 {
		need := math.Ceil(rate * e.took.slow())
		f.Flight = max(f.Flight, need)
		f.say("at that rate, %s attempts are in flight on average (Little's law), or %s if all attempts take as long as the 99th percentile", short(rate*e.took.mean()), short(need))
	}
}

func (h *held) text() string {
	var parts []string
	for i, w := range windows {
		if h.best[i].rate > 0 {
			parts = append(parts, fmt.Sprintf("%s a second over %d s (%s)", short(h.best[i].rate), w, h.best[i].at.Format(time.RFC3339)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "the highest rate without a throttle is " + strings.Join(parts, ", ")
}

// spoken returns a rate as written in files: not higher than the exact rate, and at most 1% lower.
func spoken(perSecond float64, unit string) bucket.Rate {
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour} {
		exact := perSecond * per.Seconds()
		if whole := math.Floor(exact * 1.0005); whole >= 0.99*exact && (unit == limit.Requests || per > time.Second) {
			return bucket.Rate{Amount: max(1, int64(min(whole, math.MaxInt32*64))), Per: per}
		}
	}
	return bucket.Rate{Amount: max(1, int64(perSecond*3600)), Per: time.Hour}
}

// short formats a number with three digits.
func short(v float64) string {
	if v >= 1000 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func instant(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339) }

// split returns limits of operations or of keys, if they explain the calls better than one limit of all calls.
func (u *upstream) split(whole choice, why doubt, f *Finding) (best []choice) {
	least := math.Inf(1)
	if why == noDoubt {
		least = whole.spread
	}
	for _, scope := range sortedNames(u.parts) {
		of := u.parts[scope]
		var all []choice
		free := ""
		for _, value := range sortedNames(of) {
			e := of[value]
			if found, doubt := e.find(); doubt == noDoubt {
				all = append(all, choice{named(scope, value), found, e})
			} else if e.free(u.inDry) {
				free = value
			}
		}
		spread := meanSpread(all)
		steadier := len(all) >= 2 && spread < least/2 && least > steadySpread
		if len(of) < 2 || len(all) == 0 || !steadier && (free == "" || spread >= 2*least) || best != nil && spread >= least {
			continue
		}
		best, least = u.reasons(scope, all, free, spread, whole.spread, why, f), spread
	}
	return best
}

func named(scope, value string) Limit {
	if scope == "" {
		return Limit{Operation: value, Unit: limit.Requests}
	}
	return Limit{Scope: scope, Unit: limit.Requests}
}

// free reports whether calls pass while other calls are throttled. At least seven of them should have been throttled.
func (e *estimate) free(dry [2]float64) bool {
	return e.inDry[1] == 0 && e.inDry[0]*dry[1] >= 7*(dry[0]+dry[1])
}

func meanSpread(all []choice) (sum float64) {
	for _, c := range all {
		sum += c.spread / float64(len(all))
	}
	return sum
}

// reasons adds the reasons for counting by a scope to a finding, and returns the limits.
func (u *upstream) reasons(scope string, all []choice, free string, spread, whole float64, why doubt, f *Finding) []choice {
	what := "operations"
	if scope != "" {
		what = "values of " + scope
	}
	if free != "" {
		f.say("%s are limited separately: %s passed while others were throttled", what, quotedName(free))
	} else {
		f.say("%s are limited separately: their rates vary by %.0f%% between throttles, and the total rate by %s", what, 100*spread, percent(whole, why))
	}
	if u.crowd[scope] {
		f.say("only %d %s were examined, and there are more", mostOfScope, what)
	}
	if scope == "" {
		return all
	}
	return classes(scope, all, f)
}

func percent(v float64, why doubt) string {
	if why != noDoubt || math.IsInf(v, 1) {
		return "more"
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

func quotedName(s string) string { return fmt.Sprintf("%.40q", s) }

// classes groups the keys of a scope by rates that differ by at least a quarter. The limit is the lowest one.
func classes(scope string, all []choice, f *Finding) []choice {
	slices.SortFunc(all, func(a, b choice) int {
		if a.rate < b.rate {
			return -1
		}
		return 1
	})
	begin := 0
	var first choice
	for i := 1; i <= len(all); i++ {
		if i < len(all) && all[i].rate < 1.25*all[begin].rate {
			continue
		}
		class := all[begin:i]
		if begin == 0 {
			first = class[(len(class)-1)/2]
		}
		f.say("%d throttled values of %s have a limit of about %s per second", len(class), scope, short(class[(len(class)-1)/2].rate))
		begin = i
	}
	if first.rate*1.25 <= all[len(all)-1].rate {
		f.say("the proposed limit is the lowest of these; use plans for the others")
	}
	return []choice{first}
}

func (u *upstream) fromSteps(f *Finding) {
	whole := u.steps[""]
	if whole == nil {
		return
	}
	f.say("data: steps of %v from %s to %s with %s attempts, %s of them throttled, %d gaps", whole.long, whole.begun.UTC().Format(time.RFC3339), whole.end.UTC().Format(time.RFC3339),
		short(whole.taken+whole.throttled), short(whole.throttled), whole.gaps)
	if whole.throttled == 0 {
		f.say("nothing was throttled, so no limit is proposed; the highest rate was %s per second (%s), so the limit is not lower than that", short(whole.held.rate), whole.held.at.UTC().Format(time.RFC3339))
		return
	}
	all := u.choicesOfSteps(whole, f)
	for i := range all {
		all[i].tell(f)
		f.say("bursts are shorter than a step, so none is proposed; the highest rate of a step was %s per second", short(whole.held.rate))
		if need := all[i].rate * whole.busy / max(1, whole.taken+whole.throttled); need > 0 && all[i].limit.Unit == limit.Requests {
			f.say("at that rate, %s attempts are in flight on average (Little's law), and %s in the busiest step", short(need), short(whole.inFlight))
		}
	}
}

// choicesOfSteps returns the limits that steps show. The limits are of operations if one operation was never
// throttled.
func (u *upstream) choicesOfSteps(whole *steps, f *Finding) (all []choice) {
	free := ""
	for _, name := range sortedNames(u.steps) {
		of := u.steps[name]
		if name == "" {
			continue
		}
		if found, why := of.find(false); why == noDoubt {
			all = append(all, choice{limit: named("", name), found: found})
		} else if why == quiet && of.taken > 0.05*whole.taken {
			free = name
		}
	}
	if free != "" && len(all) > 0 {
		f.say("operations are limited separately: %s passed while others were throttled", quotedName(free))
		return all
	}
	calls, why := whole.find(false)
	best := choice{limit: Limit{Unit: limit.Requests}, found: calls}
	if t, doubt := whole.find(true); doubt == noDoubt && (why != noDoubt || t.spread < calls.spread/2) {
		best, why = choice{limit: Limit{Unit: "tokens"}, found: t}, noDoubt
		f.say("the limit counts tokens, not requests: tokens per second vary by %.0f%% between steps that were throttled", 100*t.spread)
	}
	if why == noDoubt {
		return []choice{best}
	}
	if why == few {
		f.say("not enough data: at least %d throttled steps that follow a recorded step are needed", leastSpans)
	} else {
		f.say("no limit is proposed: throttles occurred at all rates, so they have no common threshold")
	}
	return nil
}
