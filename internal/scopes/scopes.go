// Package scopes combines scopes, so that a limit counts each combination of their values separately: each tool of each
// run. Limits, pauses and stores handle a combination like any other scope, and its key like any other key.
package scopes

import (
	"slices"
	"strconv"
	"strings"
)

// separator is between the scopes of a combination and between the parts of its key. No name in a file contains it.
const separator = ", "

// Join returns the scope of a combination, such as "run, tool". The order of the names has no effect.
func Join(names ...string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, separator)
}

// Several reports whether the scope is a combination.
func Several(scope string) bool { return strings.Contains(scope, separator) }

// Names returns the scopes of a combination, and nil for no scope.
func Names(scope string) []string { return Append(nil, scope) }

// Append appends the scopes of a combination to a list.
func Append(to []string, scope string) []string {
	if scope == "" {
		return to
	}
	for name := range strings.SplitSeq(scope, separator) {
		to = append(to, name)
	}
	return to
}

// Key returns the key of a combination: "run=r3, tool=search". Different values have different keys: a value is quoted as
// in Go if it is empty or contains anything but letters, digits and common punctuation of ASCII.
func Key(names []string, values map[string]string) string {
	var few [128]byte
	b := few[:0]
	for i, name := range names {
		if i > 0 {
			b = append(b, separator...)
		}
		b = append(append(b, name...), '=')
		if v := values[name]; plain(v) {
			b = append(b, v...)
		} else {
			b = strconv.AppendQuote(b, v)
		}
	}
	return string(b)
}

// plain reports whether a value needs no quotes.
func plain(v string) bool {
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-._:/@+#*", c) < 0:
			return false
		}
	}
	return v != ""
}

// Values returns the values in a key of the combination. It returns false for other texts.
func Values(names []string, key string) (map[string]string, bool) {
	values := make(map[string]string, len(names))
	for i, name := range names {
		rest, ok := strings.CutPrefix(key, name+"=")
		if !ok {
			return nil, false
		}
		value, err := strconv.QuotedPrefix(rest)
		if err != nil {
			value, _, _ = strings.Cut(rest, separator)
		}
		key = rest[len(value):]
		if i+1 < len(names) {
			if key, ok = strings.CutPrefix(key, separator); !ok {
				return nil, false
			}
		}
		if err == nil {
			value, _ = strconv.Unquote(value)
		} else if !plain(value) {
			return nil, false
		}
		values[name] = value
	}
	return values, key == ""
}

// Is reports whether the text can be a key of the scope.
func Is(scope, key string) bool {
	_, ok := Map(scope, key, func(_, value string) string { return value })
	return ok
}

// Map returns the key with each of its values replaced. A key without a combination is one value. It returns false if the
// text is not a key of the scope.
func Map(scope, key string, replace func(scope, value string) string) (string, bool) {
	if !Several(scope) {
		return replace(scope, key), true
	}
	names := Names(scope)
	values, ok := Values(names, key)
	if !ok {
		return key, false
	}
	for name, value := range values {
		values[name] = replace(name, value)
	}
	return Key(names, values), true
}
