package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// esc returns text that PostgreSQL can store, which must be UTF-8 without NUL. Other bytes and backslashes become \xHH.
// Most text is unchanged.
func esc(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\\', r == 0:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unesc reverses esc.
func unesc(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, `\x`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		n := min(2, len(after))
		if c, err := strconv.ParseUint(after[:n], 16, 8); err == nil {
			b.WriteByte(byte(c))
		}
		s = after[n:]
	}
}

// lineOf returns the number of an order key, and lockOf the number of the lock of an idempotency key. Both are the
// first bytes of a hash over all arguments.
func lineOf(upstream, tenant, key string) int64 { return number("line", upstream, tenant, key) }
func lockOf(upstream, tenant, key string) int64 { return number("key", upstream, tenant, key) }

func number(parts ...string) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "weir %q", parts))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
