package llmsim

import (
	"time"
)

// Limits are how much of a model one key may have. What is zero is not limited.
type Limits struct {
	Requests Rate
	Tokens   Rate // read and written

	InputTokens  Rate // read: Anthropic limits both apart; Gemini limits these alone
	OutputTokens Rate // written

	RequestsPerDay int64
	TokensPerDay   int64
	Zone           *time.Location // whose midnight ends a day; nil means UTC

	// CountRefused takes requests that were refused for their tokens off the limit of
	// requests, as OpenAI does.
	CountRefused bool
}

// A Rate is an amount per time.
type Rate struct {
	N     int64
	Per   time.Duration // 0 means a minute
	Burst int64         // most at once; 0 means N

	// Window takes the sum over the last Per, in place of a bucket that fills all the
	// time. It has no burst: N is the most that any window of length Per grants.
	Window bool
}

// An Accounting is what a call takes off the limits of tokens, and when.
type Accounting uint8

const (
	ByFamily       Accounting = iota // as the provider does whose wire format it is
	Estimated                        // OpenAI: max(estimate of the prompt, max_tokens), whatever is used
	EstimatedFirst                   // the same, and at the end what was used instead
	UpFront                          // Bedrock: input + max_tokens, and at the end what was used instead
	AsGenerated                      // Anthropic: input at the start, output as it is written
	InputOnly                        // Gemini: input, never output
)

// A hit is the limit that refused a call.
type hit struct {
	unit      string // "requests", "tokens", "input tokens", "output tokens"
	day       bool
	limit     int64
	used      int64
	requested int64
	per       time.Duration
	wait      time.Duration // until it would go
	never     bool          // it is more than the limit ever has
}

// A meter is what one key has left of one model.
type meter struct {
	limits                          Limits
	requests, tokens, input, output *gauge
	dayRequests, dayTokens          *daily
}

type meterKey struct{ key, model string }

func newMeter(l Limits, now time.Duration) *meter {
	return &meter{
		limits: l, requests: newGauge(l.Requests, now), tokens: newGauge(l.Tokens, now),
		input: newGauge(l.InputTokens, now), output: newGauge(l.OutputTokens, now),
		dayRequests: newDaily(l.RequestsPerDay, l.Zone), dayTokens: newDaily(l.TokensPerDay, l.Zone),
	}
}

// A need is what a call takes off one limit at its start.
type need struct {
	unit string
	g    counter
	n    int64 // that must be there
	take int64 // that is taken; less than n where output comes later
	day  bool
}

// A counter is a limit: a gauge or a daily quota.
type counter interface {
	none() bool
	// wait is how long it takes until there are n; never, if there cannot be so many.
	wait(now time.Duration, wall time.Time, n int64) (d time.Duration, never bool)
	charge(now time.Duration, wall time.Time, n int64) *entry
	adjust(now time.Duration, wall time.Time, e *entry, n int64)
	facts(now time.Duration) (limit, used int64, per time.Duration)
}

// A grant is what a call was given, until it is settled.
type grant struct {
	m        *meter
	kind     Accounting
	burndown int64
	reserved int64 // tokens
	tokens   *entry
	day      *entry
	output   int64 // counted so far
}

// admit takes all that a call needs, or nothing.
func (m *meter) admit(now time.Duration, wall time.Time, c *call) (*grant, *hit) {
	g := &grant{m: m, kind: c.accounting(), burndown: int64(c.spec.Burndown)}
	g.reserved = c.reserves(g.kind)
	needs := m.needs(g, c)
	if h := m.refusal(now, wall, needs); h != nil {
		if m.limits.CountRefused && h.unit != "requests" && !m.requests.none() && m.requests.room(now) > 0 {
			m.requests.charge(now, wall, 1)
		}
		return nil, h
	}
	for _, x := range needs {
		if x.g.none() || x.take == 0 {
			continue
		}
		e := x.g.charge(now, wall, x.take)
		switch {
		case x.unit == "tokens" && x.day:
			g.day = e
		case x.unit == "tokens":
			g.tokens = e
		}
	}
	return g, nil
}

// needs lists what a call needs, the limits of a day first: they keep it away longest.
func (m *meter) needs(g *grant, c *call) []need {
	all := []need{
		{unit: "requests", g: m.dayRequests, n: 1, take: 1, day: true},
		{unit: "requests", g: m.requests, n: 1, take: 1},
	}
	all = append(all,
		need{unit: "tokens", g: m.dayTokens, n: g.reserved, take: g.reserved, day: true},
		need{unit: "tokens", g: m.tokens, n: g.reserved, take: g.reserved},
		need{unit: "input tokens", g: m.input, n: c.input, take: c.input})
	if g.kind == AsGenerated {
		all = append(all, need{unit: "output tokens", g: m.output, n: 1})
	}
	return all
}

// refusal is the limit that keeps the call away longest.
func (m *meter) refusal(now time.Duration, wall time.Time, needs []need) (worst *hit) {
	for _, x := range needs {
		if x.g.none() {
			continue
		}
		d, never := x.g.wait(now, wall, x.n)
		if d <= 0 && !never {
			continue
		}
		h := &hit{unit: x.unit, day: x.day, requested: x.n, wait: d, never: never}
		h.limit, h.used, h.per = x.g.facts(now)
		if worst == nil || never && !worst.never || never == worst.never && d > worst.wait {
			worst = h
		}
	}
	return worst
}

// wrote counts output while it is written.
func (g *grant) wrote(now time.Duration, wall time.Time, n int64) {
	g.output += n
	if g.kind != AsGenerated {
		return
	}
	for _, x := range []counter{g.m.output, g.m.tokens, g.m.dayTokens} {
		if !x.none() {
			x.charge(now, wall, n)
		}
	}
}

// settle puts what was used in place of what was reserved.
func (g *grant) settle(now time.Duration, wall time.Time, input int64) {
	used := input + g.output
	switch g.kind {
	case UpFront:
		used = input + g.output*g.burndown
	case EstimatedFirst:
	default:
		return
	}
	if g.tokens != nil {
		g.m.tokens.adjust(now, wall, g.tokens, used-g.reserved)
	}
	if g.day != nil {
		g.m.dayTokens.adjust(now, wall, g.day, used-g.reserved)
	}
}
