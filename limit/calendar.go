package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// IsQuota reports whether the limit has a window of a day or longer, so that calls do not wait for it.
func (l Limit) IsQuota() bool { return l.Shape == Calendar && l.Every >= bucket.Day }

// Windows are two windows of a calendar limit: the one that holds an instant, and the one that follows.
type Windows struct{ Start, End, Next time.Time }

// Windows returns the calendar window that contains the instant and the next one. It is zero for other shapes.
func (l Limit) Windows(now time.Time) Windows {
	if l.Shape != Calendar {
		return Windows{}
	}
	c := l.calendar()
	start, end := c.Window(now)
	_, next := c.Window(end)
	return Windows{start, end, next}
}

// calendar returns the calendar of a valid limit. An unknown zone is UTC.
func (l *Limit) calendar() bucket.Calendar {
	zone, _ := bucket.Zone(l.Zone)
	return bucket.Calendar{Every: l.Every, Zone: zone}
}

// calendarString returns a text such as "25 a day (America/Los_Angeles)".
func (l *Limit) calendarString() string {
	article, zone := "a", l.Zone
	if l.Every == bucket.Hour {
		article = "an"
	}
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%s %s %v (%s)", l.amount(), article, l.Every, zone)
}

// validateCalendar returns the mistakes of a calendar limit.
func (l *Limit) validateCalendar() error {
	var errs []error
	if l.Amount < 1 || l.Amount > mostCalendar {
		errs = append(errs, fmt.Errorf("amount %d: must be from 1 to %d", l.Amount, int64(mostCalendar)))
	}
	if l.Per != 0 {
		errs = append(errs, fmt.Errorf("period %v: a fixed limit has none; set its calendar window", l.Per))
	}
	if l.Burst != 0 {
		errs = append(errs, fmt.Errorf("burst %d: a fixed limit has none; its amount may be used all at one time", l.Burst))
	}
	if !l.Every.Valid() {
		errs = append(errs, fmt.Errorf("every %v: want second, minute, hour, day, week or month", l.Every))
	}
	if _, err := bucket.Zone(l.Zone); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
