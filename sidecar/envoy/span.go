package envoy

import (
	"fmt"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

type unit = rls.RateLimitResponse_RateLimit_Unit

const (
	second = rls.RateLimitResponse_RateLimit_SECOND
	minute = rls.RateLimitResponse_RateLimit_MINUTE
	hour   = rls.RateLimitResponse_RateLimit_HOUR
	day    = rls.RateLimitResponse_RateLimit_DAY
	week   = rls.RateLimitResponse_RateLimit_WEEK
	month  = rls.RateLimitResponse_RateLimit_MONTH
	year   = rls.RateLimitResponse_RateLimit_YEAR
)

var unitNames = map[string]unit{
	"second": second, "minute": minute, "hour": hour, "day": day, "week": week, "month": month, "year": year,
}

var unitSeconds = map[unit]int64{second: 1, minute: 60, hour: 3600}

// A span is the window of a limit: every so many units, counted from the start of 1970. Days and longer units follow
// the calendar in the span's zone. Weeks begin on Monday.
type span struct {
	unit  unit
	every int64 // 1 or more
	zone  *time.Location
}

// maxEvery keeps the arithmetic of spans far from overflow.
const maxEvery = 1_000_000

// windows returns the current window and the next one.
func (s span) windows(now time.Time) limit.Windows {
	n := floor(s.index(now), s.every)
	return limit.Windows{
		Start: s.begin(n * s.every),
		End:   s.begin((n + 1) * s.every),
		Next:  s.begin((n + 2) * s.every),
	}
}

// index returns the number of the unit that contains an instant.
func (s span) index(now time.Time) int64 {
	if n := unitSeconds[s.unit]; n > 0 {
		return floor(now.Unix(), n)
	}
	y, m, d := now.In(s.zone).Date()
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	switch s.unit {
	case week:
		return floor(days+3, 7) // 1 January 1970 was a Thursday
	case month:
		return int64(y-1970)*12 + int64(m) - 1
	case year:
		return int64(y - 1970)
	}
	return days
}

// begin returns the first instant of a unit.
func (s span) begin(index int64) time.Time {
	if n := unitSeconds[s.unit]; n > 0 {
		return time.Unix(index*n, 0).UTC()
	}
	y, m, d := 1970, 1, 1
	switch s.unit {
	case week:
		d += int(index)*7 - 3
	case month:
		m += int(index)
	case year:
		y += int(index)
	default:
		d += int(index)
	}
	noon := time.Date(y, time.Month(m), d, 12, 0, 0, 0, s.zone) // every day has a noon, but not every day has a midnight
	start, _ := bucket.Calendar{Every: bucket.Day, Zone: s.zone}.Window(noon)
	return start
}

// String returns the span as written in the names of counters.
func (s span) String() string {
	text := unitName(s.unit)
	if s.every > 1 {
		text = fmt.Sprintf("%d %s", s.every, text)
	}
	if s.zone != time.UTC {
		text += " " + s.zone.String()
	}
	return text
}

func unitName(u unit) string {
	for name, v := range unitNames {
		if v == u {
			return name
		}
	}
	return ""
}

func floor(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}
