// Package paths interprets the raw paths of requests, as in the request line. The same path can be written in many ways, and
// servers differ in which of these they treat as equal. A decision by path must not depend on the spelling.
package paths

import (
	"slices"
	"strings"
)

// canonical normalizes a raw path as in RFC 3986 6.2.2, except for dot segments: it removes unnecessary escapes and writes the
// other escapes in upper case. All servers treat the result as the same path.
func canonical(raw string) string {
	i := strings.IndexByte(raw, '%')
	if i < 0 {
		return raw
	}
	var b strings.Builder
	b.WriteString(raw[:i])
	for ; i < len(raw); i++ {
		c, ok := escaped(raw[i:])
		switch {
		case !ok:
			b.WriteByte(raw[i])
		case unreserved(c):
			b.WriteByte(c)
			i += 2
		default:
			b.WriteString(strings.ToUpper(raw[i : i+3]))
			i += 2
		}
	}
	return b.String()
}

// Widest returns the shortest path that any server could interpret a raw path as. It decodes escapes repeatedly, replaces
// backslashes by slashes, removes parameters (;x=1), empty segments, white space and a trailing slash, and resolves dot
// segments. It serves to find out what a request may mean, and is never sent.
func Widest(raw string) string {
	if !odd(raw) {
		return raw
	}
	var kept []string
	for _, s := range segments(raw) {
		switch {
		case s == "..":
			kept = kept[:max(0, len(kept)-1)]
		case s != "" && s != ".":
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// A Path is a raw path in its relevant interpretations.
type Path struct{ raw, same, widest string }

// Read interprets a raw path.
func Read(raw string) Path {
	if !odd(raw) {
		return Path{raw, raw, raw}
	}
	return Path{raw, canonical(raw), Widest(raw)}
}

// Begins reports whether the path begins with prefix in any interpretation. If anyCase is set, these include any letter case, and
// the names that Windows treats as equal.
func (p *Path) Begins(prefix string, anyCase bool) bool {
	if anyCase {
		folded := Path{fold(p.raw), fold(p.same), windows(fold(p.widest))}
		return folded.Begins(fold(prefix), false) || strings.HasPrefix(fold(p.widest), fold(prefix))
	}
	return strings.HasPrefix(p.raw, prefix) || strings.HasPrefix(p.same, prefix) || strings.HasPrefix(p.widest, prefix) ||
		len(prefix) == len(p.widest)+1 && p.widest+"/" == prefix // the widest interpretation has no trailing slash
}

// fold returns text in lower case, so that all letters that some server treats as equal are equal.
func fold(text string) string { return strings.ToLower(strings.ToUpper(text)) }

// windows returns a path with the names of its segments in NTFS: without dots and spaces at the end, and without a stream such as
// ::$DATA.
func windows(path string) string {
	if !strings.ContainsAny(path, ".: ") {
		return path
	}
	all := strings.Split(path, "/")
	for i, s := range all {
		if name, stream, _ := strings.Cut(s, ":"); strings.Contains(stream, "$") {
			s = name
		}
		all[i] = strings.TrimRight(s, ". ")
	}
	return strings.Join(all, "/")
}

// Dotted reports whether a server could find dot segments in a raw path.
func Dotted(raw string) bool {
	return anyReading(raw, func(s []string) bool {
		return slices.ContainsFunc(s, func(s string) bool { return s == "." || s == ".." })
	})
}

// Climbs reports whether a server could interpret a raw path as leading above its root.
func Climbs(raw string) bool { return anyReading(raw, climbs) }

func climbs(segments []string) bool {
	deep := 0
	for _, s := range segments {
		switch s {
		case "", ".":
		case "..":
			if deep--; deep < 0 {
				return true
			}
		default:
			deep++
		}
	}
	return false
}

// anyReading reports whether holds is true for the segments of any interpretation of a path. The interpretation with more
// segments is not always the one that climbs.
func anyReading(raw string, holds func(segments []string) bool) bool {
	if !strings.ContainsAny(raw, ".%") {
		return false
	}
	for range mostTimes + 1 {
		for _, s := range []string{raw, beforeQuery(raw), strings.ReplaceAll(raw, "\\", "/"), strings.ReplaceAll(beforeQuery(raw), "\\", "/")} {
			if holds(split(s)) {
				return true
			}
		}
		plain := unescape(raw)
		if plain == raw {
			return false
		}
		raw = plain
	}
	return false
}

// Rest returns the part of a raw path after a prefix of complete segments, with its slash. Escapes in the prefix do not matter.
func Rest(prefix, raw string) (rest string, ok bool) {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return raw, true
	}
	raw, ok = strings.CutPrefix(raw, "/")
	for want := range strings.SplitSeq(prefix, "/") {
		have, after, more := strings.Cut(raw, "/")
		if !ok || have != want && canonical(have) != canonical(want) {
			return "", false
		}
		raw, ok = after, more
	}
	return "/" + raw, true
}

// First returns the first segment of a path without its leading slash, in a form that is equal for all paths that Rest
// treats as equal.
func First(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return canonical(first)
}

// odd reports whether a path has several interpretations.
func odd(raw string) bool {
	return strings.ContainsAny(raw, "%\\;#? \t") || strings.Contains(raw, "//") || strings.Contains(raw, "/.") ||
		len(raw) > 1 && raw[len(raw)-1] == '/' || raw == "" || raw[0] != '/'
}

// mostTimes is the number of times that escapes are decoded. Servers do not decode more often by mistake.
const mostTimes = 4

// segments returns the segments of the widest interpretation.
func segments(raw string) []string {
	for range mostTimes {
		plain := unescape(raw)
		if plain == raw {
			break
		}
		raw = plain
	}
	return split(strings.ReplaceAll(beforeQuery(raw), "\\", "/"))
}

// beforeQuery removes the part of a path that would be its query or fragment if it were parsed again.
func beforeQuery(path string) string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		return path[:i]
	}
	return path
}

// split returns the segments of a path without their parameters.
func split(path string) []string {
	all := strings.Split(path, "/")
	for i, s := range all {
		s, _, _ = strings.Cut(s, ";")
		all[i] = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
	}
	return all
}

// unescape decodes all escapes. Invalid ones stay.
func unescape(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		c, ok := escaped(s[i:])
		if ok {
			i += 2
		} else {
			c = s[i]
		}
		b = append(b, c)
	}
	return string(b)
}

// escaped decodes %XX at the beginning of s.
func escaped(s string) (c byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	high, low := hex(s[1]), hex(s[2])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func unreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
