package llm

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// count reads a number, or a string that contains one. The result is rounded up and limited to the range of int64.
func (d *document) count(n uint32) (int64, bool) {
	if v := &d.nodes[n]; v.kind == kindNumber {
		if i, err := strconv.ParseInt(string(d.body[v.start:v.end]), 10, 64); err == nil {
			return i, true
		}
	}
	f, ok := d.float(n)
	switch f = math.Ceil(f); {
	case !ok || f != f:
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// float reads a number, or a string that contains one.
func (d *document) float(n uint32) (float64, bool) {
	v := &d.nodes[n]
	if v.kind != kindNumber && v.kind != kindString {
		return 0, false
	}
	s := string(bytes.TrimSpace(d.body[v.start:v.end]))
	if s == "" || s[len(s)-1] > '9' { // exclude Inf and NaN
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		return f, true // infinity or 0
	}
	return f, err == nil
}

// times multiplies non-negative numbers. It returns math.MaxInt64 on overflow.
func times(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// appendNumber appends a JSON number so that equal numbers have the same bytes. It writes the sign, the digits from the
// first to the last nonzero one, and the power of ten of the last digit. Different numbers have different bytes, however
// many digits they have.
func appendNumber(b, s []byte) []byte {
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	whole, exp, exact := s, int64(0), true
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		whole = s[:i]
		exp, exact = exponent(s[i+1:])
	}
	start := len(b) + 1
	b = append(b, '+')
	if negative {
		b[start-1] = '-'
	}
	if i := bytes.IndexByte(whole, '.'); i >= 0 {
		exp -= int64(len(whole) - i - 1)
		b = append(append(b, whole[:i]...), whole[i+1:]...)
	} else {
		b = append(b, whole...)
	}
	digits := bytes.TrimLeft(b[start:], "0")
	if len(digits) == 0 {
		return append(b[:start-1], '0', 0)
	}
	short := bytes.TrimRight(digits, "0")
	exp += int64(len(digits) - len(short))
	if !exact { // exponents this large are unrealistic, so two spellings of one number are not unified
		return append(append(append(b[:start], 'E'), s...), 0)
	}
	b = append(append(b[:start], short...), 'e')
	return binary.AppendVarint(b, exp)
}

// exponent reads a power of ten. ok is false if it is too large to calculate with.
func exponent(s []byte) (int64, bool) {
	e, err := strconv.ParseInt(string(bytes.TrimPrefix(s, []byte("+"))), 10, 64)
	return e, err == nil && -math.MaxInt32 < e && e < math.MaxInt32
}
