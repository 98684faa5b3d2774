package llmsim

import (
	"time"
)

// Limits are the limits of one key for a model. Zero fields mean no limit.
type Limits struct {
	Requests Rate
	Tokens   Rate // input and output

	InputTokens  Rate // input: Anthropic limits both separately, and Gemini only these
	OutputTokens Rate // output

	RequestsPerDay int64
	TokensPerDay   int64
	Zone           *time.Location // time zone of a day's end; nil means UTC

	// CountRefused counts requests that were refused for their tokens in the limit of requests, as OpenAI does.
	CountRefused bool
}

// A Rate is an amount per time.
type Rate struct {
	N     int64
	Per   time.Duration // 0 means a minute
	Burst int64         // maximum at one time; 0 means N

	// Window limits the sum over the last Per instead of a refilling bucket. It has no burst: any window of length Per grants
	// at most N.
	Window bool
}

// An Accounting specifies what a call takes from token limits, and when.
type Accounting uint8

const (
	ByFamily       Accounting = iota // as the provider of the wire format
	Estimated                        // OpenAI: max(estimate of the prompt, max_tokens), without a correction
	EstimatedFirst                   // the same, corrected to the usage at the end
	UpFront                          // Bedrock: input + max_tokens, corrected to the usage at the end
	AsGenerated                      // Anthropic: input at the start, and output as it is written
	InputOnly                        // Gemini: input only
)

// A hit is the limit that refused a call.
type hit struct {
	unit      string // "requests", "tokens", "input tokens", "output tokens"
	day       bool
	limit     int64
	used      int64
	requested int64
	per       time.Duration
	wait      time.Duration // time until the call would be admitted
	never     bool          // the call exceeds the complete limit
}

// A meter is the state of one key's limits for one model.
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

// A need is a call's use of one limit at its start.
type need struct {
	unit string
	g    counter
	n    int64 // units that must be available
	take int64 // units to take; less than n if output is taken later
	day  bool
}

// A counter is a limit: a gauge or a daily quota.
type counter interface {
	none() bool
	// wait returns the time until n units are available, or never if they never are.
	wait(now time.Duration, wall time.Time, n int64) (d time.Duration, never bool)
	charge(now time.Duration, wall time.Time, n int64) *entry
	adjust(now time.Duration, wall time.Time, e *entry, n int64)
	facts(now time.Duration) (limit, used int64, per time.Duration)
}

// A grant is what an admitted call has taken, until it is settled.
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

// needs lists a call's needs. Daily limits, which have the longest waits, are first.
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

// refusal returns the limit with the longest wait.
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

// wrote counts output as it is written.
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

// settle replaces the reserved units by the used ones.
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
