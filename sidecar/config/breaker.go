package config

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A guard holds a breaker's settings while the file is read.
type guard struct {
	breaker.Config
	scope string
}

var breakerFields = []field[guard]{
	{"schedule", "a name", "none", "Schedule that the other fields modify.", func(*decoder, *node, *guard) {}},
	one("share", orOff(share, 0), func(b *guard) *float64 { return &b.Share }, "50% if no rule is given", "Opens at this share of failures within `window`, after at least 20 calls."),
	one("min_calls", count[int](1), func(b *guard) *int { return &b.MinCalls }, "20", ""),
	one("consecutive", orOff(count[int](0), 0), func(b *guard) *int { return &b.Consecutive }, "10 if no rule is given", "Opens after this many failed calls in a row. 0 turns the rule off."),
	one("consecutive_for", orOff(duration, 0), func(b *guard) *time.Duration { return &b.ConsecutiveFor }, "off; 5s if no rule is given", ""),
	one("success_takes_one", boolean, func(b *guard) *bool { return &b.SuccessTakesOne }, "false", "A success removes one failure from `consecutive`, not all."),
	one("failures", orOff(count[int](0), 0), func(b *guard) *int { return &b.Failures }, "off", ""),
	one("window", duration, func(b *guard) *time.Duration { return &b.Window }, "10s", "Window of `share`."),
	one("successes", count[int](1), func(b *guard) *int { return &b.Successes }, "2", "Successful probes in a row that close it."),
	one("open", duration, func(b *guard) *time.Duration { return &b.Open }, "30s; 1s for language models", "Longest time open before a probe, unless the upstream asks for more."),
	one("first_open", duration, func(b *guard) *time.Duration { return &b.FirstOpen }, "`open` if set, else 1s", "Length of the first open period. Each failed probe makes the next 1.5 times as long, up to `open`."),
	one("max_open", duration, func(b *guard) *time.Duration { return &b.MaxOpen }, "10m, or `open` if longer", ""),
	one("probe_timeout", duration, func(b *guard) *time.Duration { return &b.ProbeTimeout }, "30s; 1s for language models", ""),
	one("count_throttled", boolean, func(b *guard) *bool { return &b.CountThrottled }, "false", ""),
	one("scope", word, func(b *guard) *string { return &b.scope }, "one per declared operation, and one for other calls", "Scope in `keys`: each value has a breaker. `upstream`: one breaker for all calls."),
}

func readBreaker(d *decoder, n *node, u *site) {
	if isOff(n) {
		u.Policy.Breaker.Off = true
		return
	}
	b := guard{Config: schedule(d, n, breaker.Schedule, breaker.Schedules())}
	if object(d, n, breakerFields, &b) {
		checkRules(d, n, &b)
	}
	if b.FirstOpen > b.Open && b.Open > 0 && inherited(n.Get("first_open")) && !inherited(n.Get("open")) {
		b.FirstOpen = b.Open
	}
	u.Policy.Breaker, u.Policy.BreakerScope = b.Config, b.scope
}

// checkRules reports a breaker whose rules are all switched off, and fields of a rule that is not set.
func checkRules(d *decoder, n *node, b *guard) {
	if b.Share > 0 || b.Failures > 0 || b.Consecutive > 0 {
		for name, given := range map[string]bool{"consecutive_for": b.ConsecutiveFor > 0, "success_takes_one": b.SuccessTakesOne} {
			if at := n.Get(name); at != nil && !inherited(at) && given && b.Consecutive == 0 {
				d.Bad(at, "add consecutive", "needs another rule")
			}
		}
		return
	}
	for _, e := range n.Fields {
		switch e.Name {
		case "share", "failures", "consecutive":
			d.Bad(e.Value, "set share, consecutive or failures, or write breaker: off", "no rule opens the breaker")
			return
		}
	}
}
