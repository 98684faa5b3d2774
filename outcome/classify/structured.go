package classify

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// structuredLevels parses RateLimit and RateLimit-Policy as defined in IETF drafts 08 to 10, and the dictionary of draft 07.
// Limits and policies are matched by name. A policy alone becomes a level with only a size.
func structuredLevels(h http.Header, base time.Time) []outcome.Level {
	lines := h["Ratelimit"]
	policies := h["Ratelimit-Policy"]
	if lines == nil && policies == nil {
		return nil
	}
	items := parseList(strings.Join(lines, ", "))
	levels := dictionaryLevel(items, base)
	for _, it := range items {
		if it.named() {
			levels = append(levels, it.level(base))
		}
	}
	for _, p := range parseList(strings.Join(policies, ", ")) {
		if p.named() {
			levels = addPolicy(levels, p)
		}
	}
	return levels
}

func (it item) level(base time.Time) outcome.Level {
	l := outcome.Level{Name: it.text, Remaining: -1}
	if n, ok := it.count("r"); ok {
		l.Remaining = n
	}
	l.Reset = it.wait("t", base)
	return l
}

func addPolicy(levels []outcome.Level, p item) []outcome.Level {
	for i := range levels {
		if l := &levels[i]; l.Name == p.text {
			l.Limit, _ = p.count("q")
			l.Window = p.seconds("w")
			return levels
		}
	}
	l := outcome.Level{Name: p.text, Remaining: -1, Window: p.seconds("w")}
	l.Limit, _ = p.count("q")
	return append(levels, l)
}

// dictionaryLevel parses draft 07: "limit=100, remaining=50, reset=5".
func dictionaryLevel(items []item, base time.Time) []outcome.Level {
	l, ok := outcome.Level{Remaining: -1}, false
	if len(items) == 1 { // semicolons instead of commas
		items = append(items, items[0].params...)
	}
	for _, it := range items {
		n := max(it.n, 0)
		switch {
		case it.kind != kindInteger:
		case it.key == "limit":
			l.Limit, ok = n, true
		case it.key == "remaining":
			l.Remaining, ok = n, true
		case it.key == "reset":
			l.Reset, ok = numberWait(float64(n), time.Second, base)
		}
	}
	if !ok {
		return nil
	}
	return []outcome.Level{l}
}

// policyWindow finds the window of a limit after the number, as in the drafts up to 06: in "RateLimit-Limit: 100, 100;w=60" or in
// RateLimit-Policy.
func policyWindow(l *outcome.Level, h http.Header, keys ...string) {
	for _, key := range keys {
		if l.Window != 0 || h[key] == nil {
			continue
		}
		for _, it := range parseList(strings.Join(h[key], ", ")) {
			if it.kind == kindInteger && it.n == l.Limit && l.Window == 0 {
				l.Window = it.seconds("w")
			}
		}
	}
}
