package classify

import (
	"net/http"
	"strings"
	"time"
)

// maxDate is the maximum length in bytes of a date in a form other than ISO 8601.
const maxDate = 96

// httpDate parses an HTTP date in any of its three forms, and similar forms: of mail, cookies, date(1) and JavaScript, with the
// parts in any order. A date without a zone is UTC.
func httpDate(v string) (time.Time, bool) {
	if len(v) < len("2 Jan 2006 15:04") || len(v) > maxDate || strings.IndexByte(v, ':') < 0 {
		return time.Time{}, false
	}
	if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	return looseDate(v)
}

// looseDate parses a date by its parts: the name of the month, the day, the year and the time, and optionally a weekday and a
// zone.
func looseDate(v string) (time.Time, bool) {
	if i := strings.IndexByte(v, '('); i > 0 { // the name of the zone
		v = v[:i]
	}
	var d dateParts
	for word := range strings.FieldsFuncSeq(v, func(c rune) bool { return c == ' ' || c == ',' }) {
		if !d.word(word) {
			return time.Time{}, false
		}
	}
	if d.month == 0 || d.day == 0 || d.year == 0 || !d.timed || d.half != 0 && (d.hour == 0 || d.hour > 12) {
		return time.Time{}, false
	}
	if d.half != 0 {
		d.hour = d.hour%12 + d.half - 1
	}
	t := time.Date(d.year, d.month, d.day, d.hour, d.minute, d.second, d.nanos, time.UTC)
	return t.Add(-d.east), t.Day() == d.day
}

type dateParts struct {
	year, day, hour, minute, second, nanos int
	month                                  time.Month
	east                                   time.Duration
	timed, zoned                           bool
	half                                   int // 1 for AM and 13 for PM with a 12-hour clock
}

func (d *dateParts) word(w string) bool {
	switch c := w[0]; {
	case strings.IndexByte(w, ':') > 0 && isDigit(c):
		return d.clock(w)
	case isDigit(c) && strings.IndexByte(w, '-') > 0: // 20-Nov-2026
		for part := range strings.SplitSeq(w, "-") {
			if part == "" || !d.word(part) {
				return false
			}
		}
		return true
	case isDigit(c):
		return d.number(w)
	case c == '+' || c == '-':
		return d.zone(w)
	case isWeekday(w):
		return true
	case strings.EqualFold(w, "AM"):
		d.half = 1
		return true
	case strings.EqualFold(w, "PM"):
		d.half = 13
		return true
	}
	if len(w) >= 3 && d.month == 0 {
		for m := time.January; m <= time.December; m++ {
			if strings.EqualFold(w, m.String()) || strings.EqualFold(w, m.String()[:3]) {
				d.month = m
				return true
			}
		}
	}
	return d.zone(w)
}

func (d *dateParts) number(w string) bool {
	p := digits{rest: w}
	n := p.take(len(w))
	switch {
	case p.bad:
	case len(w) == 4 && d.year == 0:
		d.year = n
		return n > 0
	case len(w) > 2:
	case d.day == 0:
		d.day = n
		return n > 0 && n <= 31
	case d.year == 0:
		d.year = 2000 + n
		return true
	}
	return false
}

func (d *dateParts) clock(w string) bool {
	p := digits{rest: w}
	if strings.IndexByte(w, ':') == 1 {
		d.hour = p.take(1)
	} else {
		d.hour = p.take(2)
	}
	p.skip(':')
	if d.minute = p.take(2); p.skip(':') {
		d.second = p.take(2)
		d.nanos = p.fraction()
	}
	was := d.timed
	d.timed = true
	if p.rest != "" && (p.rest[0] == '+' || p.rest[0] == '-') && !d.zone(p.rest) { // 12:00:04+0000
		return false
	}
	return !was && !p.bad && (p.rest == "" || d.zoned) && d.hour <= 24 && d.minute < 60 && d.second <= 60
}

// westOf are the zones of RFC 822, in hours behind UTC.
var westOf = map[string]time.Duration{"EST": 5, "EDT": 4, "CST": 6, "CDT": 5, "MST": 7, "MDT": 6, "PST": 8, "PDT": 7}

func (d *dateParts) zone(w string) bool {
	if d.zoned {
		return isUTC(w) // its name
	}
	d.zoned = true
	if west, ok := westOf[strings.ToUpper(w)]; ok {
		d.east = -west * time.Hour
		return true
	}
	if len(w) > 3 && isUTC(w[:3]) { // GMT+0100
		w = w[3:]
	}
	p := digits{rest: w}
	var ok bool
	d.east, ok = p.zone()
	return ok
}
