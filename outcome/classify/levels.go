package classify

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A family is the headers that report one limit.
type family struct {
	group     string
	name      string // of the level
	rare      bool   // only read for failures
	full      bool   // reset is when the limit is full again, which implies nothing about the next call
	limit     []string
	remaining []string
	reset     []*Row
	window    []*Row
	fixed     time.Duration // the window in the name of a header
}

// newFamily returns the family of a group. The group is the level's name, with the vendor before it if several vendors use that
// name. Some limits have no name.
func newFamily(group string) *family {
	maker, name, two := strings.Cut(group, " ")
	f := &family{group: group, name: group}
	switch {
	case two:
		f.name, f.rare = name, maker != "anthropic"
	case group == "ratelimit", group == "x-ratelimit", group == "x-rate-limit":
		f.name = ""
	case group != "requests" && group != "tokens" && group != unified:
		f.rare = true
	}
	return f
}

func (f *family) add(r *Row) {
	switch r.Means {
	case Limit:
		f.limit = append(f.limit, r.Name)
		f.fixed = max(f.fixed, r.Unit)
	case Remaining:
		f.remaining = append(f.remaining, r.Name)
		f.fixed = max(f.fixed, r.Unit)
	case Reset, Full:
		f.reset, f.full = append(f.reset, r), r.Means == Full
	case Window:
		f.window = append(f.window, r)
	}
}

// reportsLimits checks one header of each kind, the cost for a plain response. All known responses with limits have one of these.
func reportsLimits(h http.Header) bool {
	return h["Ratelimit"] != nil ||
		h["Ratelimit-Remaining"] != nil ||
		h["X-Ratelimit-Remaining"] != nil ||
		h["X-Rate-Limit-Remaining"] != nil ||
		h["X-Ratelimit-Remaining-Requests"] != nil ||
		h["X-Ratelimit-Remaining-Tokens"] != nil ||
		h["Anthropic-Ratelimit-Requests-Remaining"] != nil ||
		h["Anthropic-Ratelimit-Tokens-Remaining"] != nil ||
		h["Anthropic-Ratelimit-Unified-Reset"] != nil
}

// levelsOf returns the limits that a response reports. Those from index full on report when they are full again.
func levelsOf(h http.Header, base time.Time, failed bool) (levels []outcome.Level, full int) {
	levels = structuredLevels(h, base)
	for _, whole := range [...]bool{false, true} {
		if whole {
			full = len(levels)
		}
		for _, f := range families {
			if f.full == whole && (failed || !f.rare) {
				levels = f.appendTo(levels, h, base)
			}
		}
	}
	return levels, full
}

// maxValues is the maximum number of limits in one set of headers.
const maxValues = 8

// values are the elements of a header that may be a list.
type values struct {
	of [maxValues]string
	n  int
}

// split reads all lines of the first header that exists.
func (v *values) split(h http.Header, names ...string) {
	for _, name := range names {
		lines := h[name]
		if len(lines) == 0 {
			continue
		}
		for _, line := range lines {
			for line != "" && v.n < maxValues {
				v.of[v.n], line = nextValue(line)
				v.n++
			}
		}
		return
	}
}

// at returns the value for the i-th limit. A single value applies to all.
func (v *values) at(i int) string {
	if v.n == 0 {
		return ""
	}
	return v.of[min(i, v.n-1)]
}

// sizes removes the policy after the size of a limit, as in "100, 100;w=60".
func (v *values) sizes() {
	if v.n > 1 && strings.IndexByte(v.of[0], ';') < 0 {
		for i := 1; i < v.n; i++ {
			if strings.IndexByte(v.of[i], ';') >= 0 {
				v.n = i
			}
		}
	}
}

// appendTo appends the levels of the family. Lists in its headers describe several limits.
func (f *family) appendTo(levels []outcome.Level, h http.Header, base time.Time) []outcome.Level {
	var limit, remaining, reset values
	limit.split(h, f.limit...)
	limit.sizes()
	remaining.split(h, f.remaining...)
	var unit time.Duration
	for _, r := range f.reset {
		if reset.split(h, r.Name); reset.n > 0 {
			unit = r.Unit
			break
		}
	}
	begin := len(levels)
	for i := range max(limit.n, remaining.n, reset.n) {
		l := outcome.Level{Name: f.name, Remaining: -1}
		ok := readSize(&l, limit.at(i))
		if n, said := count(remaining.at(i)); said {
			l.Remaining, ok = n, true
			l.Window = windowOf(remaining.at(i))
		}
		if d, said := oneWait(reset.at(i), unit, base); said {
			l.Reset, ok = d, true
		}
		if !ok {
			continue
		}
		f.complete(&l, limit.at(i), h, base)
		if !slices.Contains(levels[begin:], l) {
			levels = append(levels, l)
		}
	}
	return levels
}

// readSize parses the size of a limit, or the used amount and the size: "39/40".
func readSize(l *outcome.Level, v string) (ok bool) {
	used, size, ratio := strings.Cut(v, "/")
	if !ratio {
		l.Limit, ok = count(v)
		return ok
	}
	n, okN := count(used)
	if l.Limit, ok = count(size); okN && ok {
		l.Remaining = max(0, l.Limit-n)
	}
	return ok
}

// complete adds information from headers outside the family.
func (f *family) complete(l *outcome.Level, limit string, h http.Header, base time.Time) {
	l.Window = max(l.Window, f.fixed, windowOf(limit))
	for _, r := range f.window {
		if d, ok := waitOf(first(h, r.Name), r.Unit, base); ok && l.Window == 0 {
			l.Window = d
		}
	}
	switch f.group {
	case "ratelimit":
		policyWindow(l, h, "Ratelimit-Limit", "Ratelimit-Policy")
	case "x-ratelimit":
		policyWindow(l, h, "X-Ratelimit-Policy")
		l.Name = first(h, "X-Ratelimit-Resource") // GitHub: the name of the limit
	case unified:
		if first(h, "Anthropic-Ratelimit-Unified-Status") == "rejected" {
			l.Remaining = 0
		}
	}
}

// windowOf returns the window in a parameter: "100;w=21600".
func windowOf(v string) time.Duration {
	if strings.IndexByte(v, ';') < 0 {
		return 0
	}
	for _, it := range parseList(v) {
		return it.seconds("w")
	}
	return 0
}
