package refuse

import (
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A Level is a limit and its remaining units, as callers see it.
type Level struct {
	Limit   string    `json:"limit"`
	Key     string    `json:"key,omitempty"`
	Unit    string    `json:"unit"`
	Left    int64     `json:"left"`
	Full    int64     `json:"full"`
	ResetMS int64     `json:"reset_ms"`
	ResetAt time.Time `json:"reset_at"`
}

// Look returns a limit as callers see it. During a pause no units remain, even if the limit itself has some.
func Look(l limit.Limit, key string, at limit.Level, now time.Time) Level {
	return look(l, key, at, now).Level
}

// A Limit is a Level with the content of structured fields.
type Limit struct {
	Level
	rule   limit.Limit
	reset  time.Duration
	resets time.Time // end of a calendar window, in its zone
}

// Rule returns the configured limit.
func (l *Limit) Rule() *limit.Limit { return &l.rule }

func look(l limit.Limit, key string, at limit.Level, now time.Time) Limit {
	left, reset, when := max(0, at.Left), at.Reset, at.ResetAt // exact for a calendar window
	if at.Paused > 0 {
		left, reset = 0, max(reset, at.Paused)
	}
	if when.IsZero() || at.Paused > at.Reset {
		when = now.Add(reset)
	}
	// Rounded up, because a window must not appear to end early.
	when = when.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	return Limit{Level{l.Name, key, l.UnitName(), left, at.Full, Ceil(reset, time.Millisecond), when}, l, reset, at.ResetAt}
}

// limits returns the levels of all limits of the call, first the one that refused. It returns nil if no limit refused.
func limits(r *weir.Refusal, wait time.Duration, now time.Time) []Limit {
	if r.Limit == "" {
		return nil
	}
	first := look(r.Rule, r.Key, r.Level, now)
	first.Limit = r.Limit
	first.reset = min(r.RetryAfter, wait) // when the call can succeed, which may differ from the limit's reset
	if r.Reason == weir.Paused {
		first.Left = 0
	}
	all := []Limit{first}
	for _, l := range r.Levels {
		if l.Rule.Name != r.Limit || l.Key != r.Key {
			all = append(all, look(l.Rule, l.Key, l.Level, now))
		}
	}
	return all
}

// Fields returns RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10, with an item for each limit, or ""
// without limits. A hint that pauses a pool has a level and no policy.
func (f *Facts) Fields() (policy, level string) {
	if len(f.Limits) == 0 && f.Pool != "" {
		return "", LevelItem("upstream", 0, f.Wait)
	}
	policies, levels := make([]string, len(f.Limits)), make([]string, len(f.Limits))
	for i, l := range f.Limits {
		amount, window := l.policy()
		policies[i] = PolicyItem(l.Level.Limit, amount, window)
		levels[i] = LevelItem(l.Level.Limit, l.Left, l.reset)
	}
	return strings.Join(policies, ", "), strings.Join(levels, ", ")
}

// policy returns the amount per window, with a window of whole seconds. A shorter window is converted to one second. The window
// of a calendar is the current one.
func (l *Limit) policy() (amount int64, window time.Duration) {
	amount, window = l.rule.Amount, l.rule.Per
	switch {
	case l.rule.Shape == limit.Calendar:
		w := l.rule.Windows(l.ResetAt.Add(-time.Millisecond))
		window = w.End.Sub(w.Start)
	case window > 0 && window < time.Second:
		amount = int64(l.rule.PerSecond())
	}
	return amount, window
}

// PolicyItem returns a limit's item in RateLimit-Policy.
func PolicyItem(name string, amount int64, window time.Duration) string {
	return item(name, ";q=", amount, ";w=", max(Ceil(window, time.Second), 1))
}

// LevelItem returns a limit's item in RateLimit.
func LevelItem(name string, left int64, reset time.Duration) string {
	return item(name, ";r=", left, ";t=", Ceil(reset, time.Second))
}

func item(name, first string, a int64, second string, b int64) string {
	out := appendQuoted(make([]byte, 0, 64), name)
	out = strconv.AppendInt(append(out, first...), a, 10)
	return string(strconv.AppendInt(append(out, second...), b, 10))
}

// appendQuoted appends a string of structured fields (RFC 9651 3.3.3).
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '_')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
