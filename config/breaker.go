package config

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A guard is a breaker while it is read.
type guard struct {
	breaker.Config
	scope string
}

var breakerFields = []field[guard]{
	one("failures", orOff(count[int](0), 0), func(b *guard) *int { return &b.Failures }, "5 if no other rule is given", "So many failures within `window` open it. 0 is no such rule."),
	one("window", duration, func(b *guard) *time.Duration { return &b.Window }, "1m", "How far back failures and calls are counted."),
	one("consecutive", orOff(count[int](0), 0), func(b *guard) *int { return &b.Consecutive }, "0", "So many failures in a row open it, however far apart. 0 is no such rule."),
	one("share", orOff(share, 0), func(b *guard) *float64 { return &b.Share }, "off", "Failures of this part of the calls within `window` open it, once there were `min_calls`."),
	one("min_calls", count[int](1), func(b *guard) *int { return &b.MinCalls }, "20", "See `share`."),
	one("successes", count[int](1), func(b *guard) *int { return &b.Successes }, "2", "Good probes in a row that close it."),
	one("open", duration, func(b *guard) *time.Duration { return &b.Open }, "30s", "How long it stays open, unless the upstream says."),
	one("first_open", duration, func(b *guard) *time.Duration { return &b.FirstOpen }, "`open`", "How long it stays open at first. Each probe that fails makes the next time half as long again, up to `open`."),
	one("max_open", duration, func(b *guard) *time.Duration { return &b.MaxOpen }, "10m, or `open` if that is longer", "Longest time that the upstream can ask for."),
	one("probe_timeout", duration, func(b *guard) *time.Duration { return &b.ProbeTimeout }, "30s", "A probe that has not ended by then is lost."),
	one("count_throttled", boolean, func(b *guard) *bool { return &b.CountThrottled }, "false", "Makes throttled calls failures."),
	one("scope", word, func(b *guard) *string { return &b.scope }, "one for the upstream", "The scope that breakers are kept by, one of `keys`."),
}

func readBreaker(d *decoder, n *node, u *site) {
	if n.isOff() {
		u.Policy.Breaker.Off = true
		return
	}
	var b guard
	good := object(d, n, breakerFields, &b)
	if good && n.get("failures") != nil && b.Failures == 0 && b.Consecutive == 0 && b.Share == 0 {
		d.bad(n.get("failures"), "give consecutive or share, or write breaker: off", "no rule is left that opens the breaker")
	}
	u.Policy.Breaker, u.Policy.BreakerScope = b.Config, b.scope
}
