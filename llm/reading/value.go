package reading

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote appends the content of a JSON string to dst without escapes. It drops an incomplete escape at the end.
func unquote(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		if raw = raw[i+1:]; len(raw) == 0 {
			return dst
		}
		c := raw[0]
		raw = raw[1:]
		if c != 'u' {
			dst = append(dst, plainEscape(c))
			continue
		}
		var r rune
		var ok bool
		if r, raw, ok = unicodeEscape(raw); !ok {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
	}
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unicodeEscape reads the digits after \u, and a second escape if both are a surrogate pair.
func unicodeEscape(raw []byte) (r rune, rest []byte, ok bool) {
	r, ok = fourDigits(raw)
	if !ok {
		return 0, nil, false
	}
	raw = raw[4:]
	if !utf16.IsSurrogate(r) {
		return r, raw, true
	}
	if bytes.HasPrefix(raw, []byte(`\u`)) {
		if low, ok := fourDigits(raw[2:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, raw[6:], true
			}
		}
	}
	return utf8.RuneError, raw, true
}

func fourDigits(raw []byte) (rune, bool) {
	if len(raw) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[:4]), 16, 16)
	return rune(n), err == nil
}

// count parses a number of tokens. ok is false if it is not a non-negative number.
func count(raw []byte) (n int64, ok bool) {
	const most = 1 << 50
	if len(raw) == 0 || len(raw) > 32 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' || n > most {
			f, err := strconv.ParseFloat(string(raw), 64)
			return int64(min(f, most)), err == nil && f >= 0
		}
		n = n*10 + int64(c-'0')
	}
	return min(n, most), true
}

// clip cuts b to at most n bytes at a character boundary.
func clip(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}
