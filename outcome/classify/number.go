package classify

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxAfter is the longest time that a hint can say: ten years. Anything beyond
// is read as this much; what to do about it is the caller's decision.
const MaxAfter = 10 * 365 * 24 * time.Hour

// number reads a decimal number that is not negative. SDKs accept fractions
// and exponents where the standards allow only digits, so it does too; a value
// too large for a float64 is infinite.
func number(v string) (float64, bool) {
	v = strings.TrimSpace(v)
	if v == "" || strings.Trim(v, "0123456789.eE+-") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil && !math.IsInf(n, 1) {
		return 0, false
	}
	return n, n >= 0
}

// amount reads a number of units. The clamp comes before the conversion to an
// integer: a few digits more must not turn a long wait into a negative one.
func amount(v string, unit time.Duration) (time.Duration, bool) {
	n, ok := number(v)
	if !ok {
		return 0, false
	}
	return scale(n, unit), true
}

func scale(n float64, unit time.Duration) time.Duration {
	ns := math.Round(n * float64(unit))
	if !(ns > 0) {
		return 0
	}
	if ns >= float64(MaxAfter) {
		return MaxAfter
	}
	return time.Duration(ns)
}

// until is the time from base to t; it cannot be told if base is not known.
func until(t, base time.Time) (time.Duration, bool) {
	if base.IsZero() {
		return 0, false
	}
	return clamp(t.Sub(base)), true
}

func clamp(d time.Duration) time.Duration { return min(max(d, 0), MaxAfter) }

// duration reads "6m0s", "12ms" and, as protobuf writes it, "36.429760048s".
func duration(v string) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if s, ok := strings.CutSuffix(v, "s"); ok {
		if d, ok := amount(s, time.Second); ok {
			return d, true
		}
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0, false
	}
	return clamp(d), true
}

// Instants are told from durations by size: nobody waits a billion seconds, and
// no epoch second is as large as the epoch millisecond of 2001.
const (
	epochSeconds = 1e9
	epochMillis  = 1e12
)

// reset reads when a limit is full again, in any of the ways in use: seconds
// from now, seconds or milliseconds of the epoch, RFC 3339, or a Go duration.
func reset(v string, base time.Time) (time.Duration, bool) {
	if v == "" {
		return 0, false // before parsers that make errors of it
	}
	if n, ok := number(v); ok {
		return resetNumber(n, base)
	}
	if strings.IndexByte(v, 'T') < 0 {
		return duration(v)
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return 0, false
	}
	return until(t, base)
}

func resetNumber(n float64, base time.Time) (time.Duration, bool) {
	if n <= epochSeconds {
		return scale(n, time.Second), true
	}
	if n > epochMillis {
		n /= 1000
	}
	if base.IsZero() {
		return 0, false
	}
	now := float64(base.UnixMilli()) / 1000
	return scale(n-now, time.Second), true
}

// count reads a whole number; below nothing is nothing.
func count(v string) (int64, bool) {
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil && n != math.MaxInt64 {
		return 0, false
	}
	return max(n, 0), true
}
