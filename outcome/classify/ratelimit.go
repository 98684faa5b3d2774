package classify

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A family is a set of headers that report one limit.
type family struct{ name, limit, remaining, reset string }

var (
	draft6 = family{"", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}
	legacy = family{"", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

	// OpenAI and Anthropic define reset as the time to a full limit, so it says
	// nothing about the next call: vendors are kept apart from the standards.
	vendors = [...]family{
		{"requests", "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{"tokens", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		{"requests", "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"tokens", "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
		{"input-tokens", "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{"output-tokens", "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
		{unified, "Anthropic-Ratelimit-Unified-Limit", "Anthropic-Ratelimit-Unified-Remaining", "Anthropic-Ratelimit-Unified-Reset"},
	}
)

// unified is what Anthropic calls the limits of a subscription, taken together.
const unified = "unified"

// reportsLimits looks for one header of each kind, which is what a plain answer
// pays for. All that are known to be sent at all are sent with these.
func reportsLimits(h http.Header) bool {
	return h["Ratelimit"] != nil ||
		h["Ratelimit-Remaining"] != nil ||
		h["X-Ratelimit-Remaining"] != nil ||
		h["X-Ratelimit-Remaining-Requests"] != nil ||
		h["X-Ratelimit-Remaining-Tokens"] != nil ||
		h["Anthropic-Ratelimit-Requests-Remaining"] != nil ||
		h["Anthropic-Ratelimit-Tokens-Remaining"] != nil ||
		h["Anthropic-Ratelimit-Unified-Reset"] != nil
}

// standardLevels are the limits whose reset says when the next call may be made.
func standardLevels(h http.Header, base time.Time) []outcome.Level {
	levels := structuredLevels(h)
	if l, ok := draft6.level(h, base); ok {
		levels = append(levels, quotaPolicy(l, h))
	}
	if l, ok := legacy.level(h, base); ok {
		l.Name = first(h, "X-Ratelimit-Resource") // GitHub: which of its limits
		levels = append(levels, l)
	}
	return levels
}

func vendorLevels(h http.Header, base time.Time) []outcome.Level {
	var levels []outcome.Level
	for i := range vendors {
		if l, ok := vendors[i].level(h, base); ok {
			if l.Name == unified && first(h, "Anthropic-Ratelimit-Unified-Status") == "rejected" {
				l.Remaining = 0
			}
			levels = append(levels, l)
		}
	}
	return levels
}

// level reads one family; it reports false if none of its headers can be read.
func (f *family) level(h http.Header, base time.Time) (l outcome.Level, ok bool) {
	l = outcome.Level{Name: f.name, Remaining: -1}
	if n, said := count(leading(first(h, f.limit))); said {
		l.Limit, ok = n, true
	}
	if n, said := count(first(h, f.remaining)); said {
		l.Remaining, ok = n, true
	}
	if d, said := reset(first(h, f.reset), base); said {
		l.Reset, ok = d, true
	}
	return l, ok
}
