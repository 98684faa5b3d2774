package classify

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxAfter is the maximum wait of a hint: ten years. Longer waits are reduced to it. The caller decides what to do about them.
const MaxAfter = 10 * 365 * 24 * time.Hour

// Numbers from these on are instants, in seconds, milliseconds, microseconds and nanoseconds since 1970. No wait is a billion
// seconds long, and a Unix time in seconds is smaller than any in milliseconds since 2001.
const (
	epochSeconds = 1e9
	epochMillis  = 1e12
	epochMicros  = 1e15
	epochNanos   = 1e18
)

// maxValue is the maximum length of a value, in bytes.
const maxValue = 256

// waitOf parses the wait in a value, relative to base. The value is a number of units, a duration ("1m30s", "4 seconds", "PT4S",
// "00:00:04"), or an instant (a Unix time, ISO 8601, an HTTP date). It may be quoted, have parameters after a semicolon, or be a
// list, whose longest wait counts.
func waitOf(v string, unit time.Duration, base time.Time) (wait time.Duration, ok bool) {
	if len(v) > maxValue {
		return 0, false
	}
	if strings.IndexByte(v, ',') >= 0 { // within a duration, as in "1 minute, 4 seconds"
		if wait, ok = oneWait(v, unit, base); ok {
			return wait, true
		}
	}
	for v != "" {
		var one string
		one, v = nextValue(v)
		d, read := oneWait(one, unit, base)
		if !read {
			return 0, false
		}
		wait, ok = max(wait, d), true
	}
	return wait, ok
}

// nextValue splits a list after its first value. The comma after the weekday of a date is part of the value, like the comma in a
// second of ISO 8601.
func nextValue(list string) (value, rest string) {
	i := strings.IndexByte(list, ',')
	if i < 0 {
		return list, ""
	}
	if i+1 < len(list) && isDigit(list[i+1]) && (list[0]|0x20 == 'p' || strings.IndexByte(list[:i], ':') > 0 && list[0] == '2') {
		if j := strings.IndexByte(list[i+1:], ','); j >= 0 {
			i += 1 + j
		} else {
			return list, ""
		}
	} else if isWeekday(strings.TrimLeft(strings.TrimSpace(list[:i]), `"'`)) {
		j := strings.IndexByte(list[i+1:], ',')
		if j < 0 {
			return list, ""
		}
		i += 1 + j
	}
	if rest = list[i+1:]; rest == "" {
		rest = " " // an empty value, which is unreadable
	}
	return list[:i], rest
}

func isWeekday(s string) bool {
	if len(s) < 3 || len(s) > len("Wednesday") {
		return false
	}
	for _, day := range [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"} {
		if strings.EqualFold(s, day) || strings.EqualFold(s, day[:3]) {
			return true
		}
	}
	return false
}

// oneWait is waitOf for a value that is not a list.
func oneWait(v string, unit time.Duration, base time.Time) (time.Duration, bool) {
	v = bare(v)
	if v == "" {
		return 0, false
	}
	if n, ok := number(v); ok {
		return numberWait(n, unit, base)
	}
	switch c := v[0]; {
	case c == 'P' || c == 'p':
		return isoDuration(v[1:])
	case isDigit(c) || c == '.':
		if d, rest, ok := unitWait(v); ok {
			return d, strings.Trim(rest, " .") == ""
		}
		if d, ok := clockWait(v); ok {
			return d, true
		}
		if t, ok := isoInstant(v); ok {
			return until(t, base)
		}
	case !isAlpha(c):
		return 0, false
	}
	if t, ok := httpDate(v); ok {
		return until(t, base)
	}
	return 0, false
}

// bare removes spaces, parameters, comments and quotes around a value.
func bare(v string) string {
	v = strings.TrimSpace(v)
	if i := strings.IndexAny(v, ";("); i >= 0 {
		v = strings.TrimSpace(v[:i])
	}
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		v = strings.TrimSpace(v[1 : n-1])
	}
	return v
}

// number parses a non-negative decimal number. Like the SDKs, it accepts fractions and exponents where the standards only allow
// digits. A value too large for a float64 is infinite.
func number(v string) (float64, bool) {
	if v == "" || v[0] != '.' && v[0] != '-' && v[0] != '+' && !isDigit(v[0]) || strings.Trim(v, "0123456789.eE+-") != "" {
		return 0, false
	}
	if strings.Count(v, "-")+strings.Count(v, "+") > 2 || strings.IndexByte(v, '.') != strings.LastIndexByte(v, '.') {
		return 0, false // a date: avoids the cost of a parse error
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil && !math.IsInf(n, 1) {
		return 0, false
	}
	return n, n >= 0
}

// numberWait returns the wait for a number without a unit.
func numberWait(n float64, unit time.Duration, base time.Time) (time.Duration, bool) {
	seconds := n
	switch {
	case n >= epochNanos:
		seconds = n / 1e9
	case n >= epochMicros:
		seconds = n / 1e6
	case n >= epochMillis:
		seconds = n / 1e3
	case n < epochSeconds, unit < time.Second && !near(n, base):
		return scale(n, unit), true
	}
	if base.IsZero() {
		return 0, false
	}
	return scale(seconds-float64(base.UnixMilli())/1000, time.Second), true
}

// near reports whether a Unix time in seconds is not before yesterday. A field in milliseconds may contain a wait of a billion,
// which is 12 days. This distinguishes an instant in such a field from a wait.
func near(n float64, base time.Time) bool {
	return !base.IsZero() && n >= float64(base.Unix()-24*60*60)
}

// scale clamps before the conversion to an integer, because an overflow would turn a long wait into a negative one.
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

// until returns the time from base to t. ok is false if base is unknown.
func until(t, base time.Time) (time.Duration, bool) {
	if base.IsZero() {
		return 0, false
	}
	return clamp(t.Sub(base)), true
}

func clamp(d time.Duration) time.Duration { return min(max(d, 0), MaxAfter) }

// unitWait parses numbers with units from the left: "1m30s", "20ms", "4 seconds", "1 hour and 2 minutes". rest is the remaining
// text. A comma only joins smaller units: "30s, 60s" is a list.
func unitWait(v string) (d time.Duration, rest string, ok bool) {
	var last time.Duration
	end := v
	for {
		n, after, read := leadingNumber(v)
		if !read {
			return d, end, ok
		}
		word, after := leadingWord(strings.TrimPrefix(strings.TrimLeft(after, " \u00a0"), "more "))
		unit := unitOf(word)
		if unit == 0 || last != 0 && unit >= last {
			return d, end, ok
		}
		d, v, end, ok, last = clamp(d+scale(n, unit)), after, after, true, 0
		next := strings.TrimLeft(v, " ")
		if joined, cut := strings.CutPrefix(next, ","); cut {
			next, last = strings.TrimLeft(joined, " "), unit
		}
		if joined, cut := strings.CutPrefix(next, "and "); cut {
			next = strings.TrimLeft(joined, " ")
		}
		if next == "" || !isDigit(next[0]) {
			return d, v, true
		}
		v = next
	}
}

// leadingNumber parses digits, with a decimal point and commas between thousands.
func leadingNumber(v string) (n float64, rest string, ok bool) {
	end, point, commas := 0, false, false
	for ; end < len(v); end++ {
		switch c := v[end]; {
		case isDigit(c):
			continue
		case c == '.' && !point && end+1 < len(v) && isDigit(v[end+1]):
			point = true
			continue
		case c == ',' && !point && end > 0 && thousands(v[end+1:]):
			commas = true
			continue
		}
		break
	}
	digits := v[:end]
	if commas {
		digits = strings.ReplaceAll(digits, ",", "")
	}
	n, ok = number(digits)
	return n, v[end:], ok
}

func thousands(v string) bool {
	return len(v) >= 3 && isDigit(v[0]) && isDigit(v[1]) && isDigit(v[2]) && (len(v) == 3 || !isDigit(v[3]))
}

// leadingWord splits off a word of letters, including the micro sign.
func leadingWord(v string) (word, rest string) {
	i := 0
	for i < len(v) && (isAlpha(v[i]) || v[i] >= 0x80) {
		i++
	}
	return v[:i], v[i:]
}

// unitOf returns the unit for a word in any case, or 0.
func unitOf(word string) time.Duration {
	switch strings.ToLower(word) {
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	case "w", "week", "weeks":
		return 7 * 24 * time.Hour
	case "us", "µs", "μs", "microsecond", "microseconds":
		return time.Microsecond
	case "ns", "nanosecond", "nanoseconds":
		return time.Nanosecond
	}
	return 0
}

// isoDuration parses the part of an ISO 8601 duration after the P. A month has 30 days and a year 365.
func isoDuration(v string) (d time.Duration, ok bool) {
	const day = 24 * time.Hour
	units := "YMWDHMS"
	lengths := [...]time.Duration{365 * day, 30 * day, 7 * day, day, time.Hour, time.Minute, time.Second}
	at, inTime := 0, false
	for v != "" {
		if !inTime && (v[0] == 'T' || v[0] == 't') {
			inTime, at, v = true, 4, v[1:]
			continue
		}
		end := 0
		for end < len(v) && (isDigit(v[end]) || v[end] == '.' || v[end] == ',') {
			end++
		}
		n, read := number(strings.Replace(v[:end], ",", ".", 1))
		if !read || end == len(v) {
			return 0, false
		}
		upTo := 4 // units of days and longer
		if inTime {
			upTo = len(units)
		}
		for at < upTo && units[at] != v[end]&^0x20 {
			at++
		}
		if at == upTo {
			return 0, false
		}
		d, ok, v = clamp(d+scale(n, lengths[at])), true, v[end+1:]
		at++
	}
	return d, ok
}

// clockWait parses "00:01:30.5", and "1.00:01:30" with days, the form of .NET.
func clockWait(v string) (time.Duration, bool) {
	var days float64
	if i := strings.IndexByte(v, '.'); i > 0 && i < strings.IndexByte(v, ':') {
		n, ok := number(v[:i])
		if !ok {
			return 0, false
		}
		days, v = n, v[i+1:]
	}
	h, v, ok := strings.Cut(v, ":")
	m, s, more := strings.Cut(v, ":")
	if !ok || !more || len(h) > 3 || len(m) != 2 || len(s) < 2 || s[0] == '-' || s[0] == '+' {
		return 0, false
	}
	hours, okH := number(h)
	minutes, okM := number(m)
	seconds, okS := number(s)
	if !okH || !okM || !okS || minutes >= 60 || seconds >= 60 {
		return 0, false
	}
	return scale(days*24*3600+hours*3600+minutes*60+seconds, time.Second), true
}

// isoInstant parses an ISO 8601 date and time: "2026-11-20T12:00:30Z", "20261120T120030.5+0100", "2026-11-20T12:00Z", also with a
// space instead of the T. The default zone is UTC, the default time is midnight.
func isoInstant(v string) (time.Time, bool) {
	if i := strings.IndexByte(v, '['); i > 0 { // RFC 9557
		v = v[:i]
	}
	p := digits{rest: v}
	year := p.take(4)
	between := byte('-')
	if p.rest != "" && p.rest[0] == '/' {
		between = '/'
	}
	parted := p.skip(between)
	month := p.take(2)
	if parted != p.skip(between) {
		return time.Time{}, false
	}
	day := p.take(2)
	var hour, minute, second, nanos int
	if p.rest != "" {
		if !p.skip('T') && !p.skip('t') && !p.skip(' ') {
			return time.Time{}, false
		}
		hour = p.take(2)
		if p.skip(':') || p.digit() {
			minute = p.take(2)
			if p.skip(':') || p.digit() {
				second = p.take(2)
				nanos = p.fraction()
			}
		}
	}
	east, ok := p.zone()
	if p.bad || !ok || month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC).Add(-east), true
}

// digits parses numbers of fixed width from the left.
type digits struct {
	rest string
	bad  bool
}

func (p *digits) digit() bool { return p.rest != "" && isDigit(p.rest[0]) }

func (p *digits) take(n int) (v int) {
	if len(p.rest) < n {
		p.bad = true
		return 0
	}
	for i := range n {
		if !isDigit(p.rest[i]) {
			p.bad = true
			return 0
		}
		v = 10*v + int(p.rest[i]-'0')
	}
	p.rest = p.rest[n:]
	return v
}

func (p *digits) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// fraction parses the fraction of a second, in nanoseconds.
func (p *digits) fraction() (nanos int) {
	if !p.skip('.') && !p.skip(',') {
		return 0
	}
	unit := int(time.Second)
	for p.digit() {
		unit /= 10
		nanos += unit * int(p.rest[0]-'0')
		p.rest = p.rest[1:]
	}
	return nanos
}

// zone parses the end of an instant: the offset from UTC.
func (p *digits) zone() (east time.Duration, ok bool) {
	p.rest = strings.TrimSpace(p.rest)
	switch {
	case p.rest == "", isUTC(p.rest):
		return 0, true
	case p.rest[0] != '+' && p.rest[0] != '-':
		return 0, false
	}
	p.rest, _, _ = strings.Cut(p.rest, " ") // the zone's name, as Go writes it
	sign := time.Duration(1)
	if p.rest[0] == '-' {
		sign = -1
	}
	p.rest = p.rest[1:]
	hours := p.take(2)
	p.skip(':')
	minutes := 0
	if p.rest != "" {
		minutes = p.take(2)
	}
	return sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute), p.rest == "" && !p.bad
}

func isUTC(zone string) bool {
	return strings.EqualFold(zone, "Z") || strings.EqualFold(zone, "UTC") || strings.EqualFold(zone, "GMT") || strings.EqualFold(zone, "UT")
}

// count parses a whole number. It truncates a fraction, and negative numbers become 0.
func count(v string) (int64, bool) {
	if v == "" || len(v) > maxValue {
		return 0, false
	}
	v = bare(v)
	if v == "" || !isDigit(v[0]) && v[0] != '-' && v[0] != '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err == nil || n == math.MaxInt64 {
		return max(n, 0), true
	}
	if f, ok := number(v); ok && f < math.MaxInt64 {
		return int64(f), true
	}
	return 0, false
}
