package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A remain is one limit of a refused call and what is left of it.
type remain struct {
	Limit   string    `json:"limit"`
	Key     string    `json:"key,omitempty"`
	Unit    string    `json:"unit"`
	Left    int64     `json:"left"`
	Full    int64     `json:"full"`
	ResetMS int64     `json:"reset_ms"`
	ResetAt time.Time `json:"reset_at"`

	rule  limit.Limit
	reset time.Duration
}

// remains is what is left of every limit that the call was charged to, that which
// said no before the others.
func remains(r *weir.Refusal, now time.Time) []remain {
	first := newRemain(r.Rule, r.Key, r.Level, now)
	first.Limit = r.Limit
	first.reset = min(r.RetryAfter, endless) // when the call can be met, which may be sooner or later
	if r.Reason == weir.Paused {
		first.Left = 0
	}
	all := []remain{first}
	for _, l := range r.Levels {
		if l.Rule.Name != r.Limit || l.Key != r.Key {
			all = append(all, newRemain(l.Rule, l.Key, l.Level, now))
		}
	}
	return all
}

// newRemain is a limit as callers see it: during a pause nothing is left, however
// much the limit itself has.
func newRemain(l limit.Limit, key string, at limit.Level, now time.Time) remain {
	left, reset, when := max(0, at.Left), at.Reset, at.ResetAt
	if at.Paused > 0 {
		left, reset = 0, max(reset, at.Paused)
	}
	if when.IsZero() || at.Paused > at.Reset {
		when = now.Add(reset)
	}
	// Never earlier than it is: a window is not over before it ends.
	when = when.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	return remain{l.Name, key, l.UnitName(), left, at.Full, ceil(reset, time.Millisecond), when, l, reset}
}

// rateLimitFields are the fields of draft-ietf-httpapi-ratelimit-headers-10, with an
// item for each limit.
func rateLimitFields(h http.Header, all []remain) {
	policies, levels := make([]string, len(all)), make([]string, len(all))
	for i, l := range all {
		amount, window := l.policy()
		policies[i] = fmt.Sprintf(`%s;q=%d;w=%d`, quoted(l.Limit), amount, window)
		levels[i] = fmt.Sprintf(`%s;r=%d;t=%d`, quoted(l.Limit), l.Left, ceil(l.reset, time.Second))
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(levels, ", "))
}

// policy is an amount per window, in whole seconds: an amount per less is told per
// second. That of a calendar is as long as the present one.
func (l *remain) policy() (amount, seconds int64) {
	amount, window := l.rule.Amount, l.rule.Per
	switch {
	case l.rule.Shape == limit.Fixed:
		w := l.rule.Windows(l.ResetAt.Add(-time.Millisecond))
		window = w.End.Sub(w.Start)
	case window > 0 && window < time.Second:
		amount = int64(l.rule.PerSecond())
	}
	return amount, max(ceil(window, time.Second), 1)
}
